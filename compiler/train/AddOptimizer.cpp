//===- AddOptimizer.cpp - Let a step write what it has learned ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Ports.h"
#include "compiler/files/Globs.h"
#include "compiler/train/Optimizers.h"
#include "compiler/train/Passes.h"
#include "compiler/train/StepSums.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::train {

#define GEN_PASS_DEF_ADDOPTIMIZERPASS
#include "compiler/train/Passes.h.inc"

namespace {

/// A group of parameters, and the globs that name them.
struct Group {
  OptimizerSpec settings;
  files::Globs globs;
};

class OptimizerBuilder {
public:
  OptimizerBuilder(ModuleOp module, func::FuncOp function,
                   std::vector<Group> groups, double clipNorm,
                   int64_t microBatches, bool guards, bool onHost)
      : module(module), symbols(module), function(function),
        end(function.getBody().front().getTerminator()),
        b(NameLoc::get(StringAttr::get(function.getContext(), "loss")), end),
        groups(std::move(groups)), clipNorm(clipNorm), guards(guards),
        onHost(onHost), sums(function, b, microBatches) {}

  LogicalResult run() {
    PARTITA_TRY(collect());
    Term loss = sums.ofStep(end->getOperand(0));
    std::vector<autodiff::Result> results = {{loss.get(), "loss"}};
    for (Parameter &parameter : parameters)
      parameter.gradient = sums.ofStep(
          parameter.gradient,
          FlatSymbolRefAttr::get(parameter.weight.getSymNameAttr()));
    b.setLoc(NameLoc::get(b.getStringAttr("optimizer")));
    if (clipNorm > 0 || guards)
      results.push_back({limit(loss).get(), "gradient_norm"});
    PARTITA_TRY(addInputs());
    for (Parameter &parameter : parameters)
      update(parameter);
    makeStates(module, llvm::map_to_vector(parameters, [](auto &parameter) {
                 return parameter.weight;
               }));
    if (guards)
      guardStatistics();
    finish(results);
    return success();
  }

private:
  struct Parameter {
    nn::WeightOp weight;
    Value value, gradient;
    size_t group = 0;
  };

  InFlightDiagnostic fail() {
    return emitError(UnknownLoc::get(function.getContext()));
  }

  /// The trained weights that have a gradient, in the order of the module.
  LogicalResult collect() {
    PARTITA_TRY(sums.findCount());
    llvm::StringMap<Value> gradients;
    for (const auto &[name, gradient] : sums.getGradients())
      gradients[name] = gradient;
    function.walk([&](nn::ParameterOp parameter) {
      values.try_emplace(parameter.getWeightAttr().getAttr(),
                         parameter.getResult());
    });
    for (auto weight : module.getOps<nn::WeightOp>()) {
      if (!weight->hasAttr(autodiff::kTrainedAttr))
        continue;
      Parameter parameter{weight, values.lookup(weight.getSymNameAttr()),
                          gradients.lookup(weight.getOrigin())};
      if (!parameter.value || !parameter.gradient)
        continue;
      Type element = nn::getTensorType(parameter.value).getElementType();
      if (!element.isF32() && !element.isF64())
        return fail() << "'" << weight.getOrigin() << "' is of " << element
                      << ", and parameters of f32 and f64 are trained: freeze "
                         "it (--freeze), or convert the model to f32";
      if (nn::getTensorType(parameter.gradient) !=
          nn::getTensorType(parameter.value))
        return fail() << "the gradient of '" << weight.getOrigin()
                      << "' has another type than the parameter";
      for (size_t i = 1; i < groups.size() && parameter.group == 0; ++i)
        if (groups[i].globs.match(weight.getOrigin()))
          parameter.group = i;
      parameters.push_back(parameter);
    }
    if (parameters.empty())
      return fail() << "there is no parameter to train";
    for (Group &group : groups)
      PARTITA_TRY(group.globs.checkUse(UnknownLoc::get(function.getContext())));
    return success();
  }

  /// Shortens all gradients alike, if their norm is too large, and finds out
  /// whether the step may change states. Returns the norm.
  Term limit(Term loss) {
    Term total;
    for (const Parameter &parameter : parameters) {
      Term g(b, parameter.gradient);
      Term part = (g * g).sum(allDims(g.rank())).cast(b.getF64Type());
      total = total.get() ? total + part : part;
    }
    Term norm = sqrt(total);
    if (guards)
      mayChange = isFinite(norm) && isFinite(loss.cast(b.getF64Type()));
    // As PyTorch's clip_grad_norm_.
    Term factor = norm.splat(clipNorm) / (norm + 1e-6);
    factor = select(factor > 1.0, 1.0, factor);
    const Location loc = b.getLoc();
    for (Parameter &parameter : parameters) {
      Term g(b, parameter.gradient), own = factor.cast(g.element());
      setUpdateLoc(parameter.weight);
      // Without a factor it is of no use here but to order: an update that
      // could begin before the norm is known would be a kernel with the norm,
      // and its results would take memory until the choice.
      parameter.gradient =
          clipNorm > 0 ? g * own.broadcast({}, g.shape())
                       : select(mayChange.broadcast({}, g.shape()), g, 0.0);
      b.setLoc(loc);
    }
    return norm;
  }

  /// Of f64. NaN compares with nothing.
  static Term isFinite(Term x) {
    const double most = std::numeric_limits<double>::max();
    return compare(nn::ComparePredicate::le, x, x.splat(most)) && x >= -most;
  }

  /// The new value of a state, or in a step that may change none the old one.
  Term guard(Term next, Term old) {
    return guards ? select(mayChange.broadcast({}, old.shape()), next, old)
                  : next;
  }

  /// Running statistics are states that no optimizer changes.
  void guardStatistics() {
    const Location loc = b.getLoc();
    for (OpOperand &result : end->getOpOperands()) {
      const unsigned number = result.getOperandNumber();
      if (!function.getResultAttr(number, nn::kStatisticAttr))
        continue;
      auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
          number, nn::kStateAttr);
      Term next(b, result.get()), old(b, values.lookup(state.getAttr()));
      b.setLoc(result.get().getLoc());
      Term kept = guard(next, old);
      kept.get().getDefiningOp()->setAttr(nn::kGuardAttr, b.getUnitAttr());
      result.set(kept.get());
      b.setLoc(loc);
    }
  }

  FailureOr<Term> addInput(StringRef name, ArrayRef<int64_t> shape) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto other = function.getArgAttrOfType<StringAttr>(i, nn::kNameAttr);
          other && other.getValue() == name)
        return fail() << "the model has an input '" << name
                      << "', which is a name of an input of training: rename "
                         "it in the model";
    BlockArgument added = PARTITA_TRY(autodiff::addInput(
        function, name, RankedTensorType::get(shape, b.getF64Type())));
    function.setArgAttr(added.getArgNumber(), nn::kPerStepAttr,
                        b.getUnitAttr());
    return Term(b, added);
  }

  LogicalResult addInputs() {
    const auto count = static_cast<int64_t>(groups.size());
    FailureOr<Term> rates = addInput("learning_rate", {count}),
                    decays = addInput("weight_decay", {count}),
                    step = addInput("step", {});
    if (failed(rates) || failed(decays) || failed(step))
      return failure();
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back({rates->slice({i}, {i + 1}).reshape({}),
                         decays->slice({i}, {i + 1}).reshape({}), *step});
    return success();
  }

  /// What people see of the ops of an update, and what keeps them together.
  void setUpdateLoc(nn::WeightOp weight) {
    b.setLoc(NameLoc::get(b.getStringAttr(weight.getOrigin() + ".update")));
  }

  void update(const Parameter &parameter) {
    nn::WeightOp weight = parameter.weight;
    const OptimizerSpec &settings = groups[parameter.group].settings;
    auto type = nn::getTensorType(parameter.value);
    SmallVector<Term> moments;
    SmallVector<FlatSymbolRefAttr> symbols;
    nn::WeightOp last = weight;
    for (const Moment &moment : getMoments(settings)) {
      nn::WeightOp made = last = makeMoment(weight, last, type, moment);
      symbols.push_back(FlatSymbolRefAttr::get(made.getSymNameAttr()));
      moments.push_back(Term(b, nn::ParameterOp::create(b, type, symbols.back(),
                                                        b.getUnitAttr())));
    }
    setUpdateLoc(weight);
    Stepped stepped =
        step(settings, numbers[parameter.group], Term(b, parameter.value),
             Term(b, parameter.gradient), moments);
    states.push_back({FlatSymbolRefAttr::get(weight.getSymNameAttr()),
                      guard(stepped.parameter, Term(b, parameter.value))});
    for (auto [symbol, moment, old] :
         llvm::zip_equal(symbols, stepped.moments, moments))
      states.push_back({symbol, guard(moment, old)});
  }

  /// Behind `last`.
  nn::WeightOp makeMoment(nn::WeightOp weight, nn::WeightOp last,
                          RankedTensorType type, const Moment &moment) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(last);
    auto made = nn::WeightOp::create(
        b, weight.getLoc(), (weight.getSymName() + "." + moment.name).str(),
        (weight.getOrigin() + "/" + moment.name).str(), type, StringAttr(),
        IntegerAttr(), IntegerAttr(), nn::makeSplat(type, moment.initial),
        /*state=*/true, /*part=*/TypeAttr());
    made->setAttr(nn::kRoleAttr, b.getStringAttr("optimizer"));
    if (onHost)
      made->setAttr(nn::kOnHostAttr, b.getUnitAttr());
    made->remove();
    symbols.insert(made, std::next(Block::iterator(last)));
    return made;
  }

  void finish(const std::vector<autodiff::Result> &results) {
    std::vector<autodiff::Result> all = results;
    for (const State &state : states)
      all.push_back({state.value.get(), ""});
    autodiff::setResults(function, all);
    for (auto [i, state] : llvm::enumerate(states))
      function.setResultAttrs(
          static_cast<unsigned>(results.size() + i),
          b.getDictionaryAttr(b.getNamedAttr(nn::kStateAttr, state.symbol)));
    sums.markStep(static_cast<unsigned>(results.size()));
  }

  struct State {
    FlatSymbolRefAttr symbol;
    Term value;
  };

  ModuleOp module;
  SymbolTable symbols;
  func::FuncOp function;
  Operation *end;
  ImplicitLocOpBuilder b;
  std::vector<Group> groups; ///< the first has all other parameters
  const double clipNorm;
  const bool guards; ///< a step that is not finite changes no state
  const bool onHost; ///< where moments lie
  StepSums sums;
  Term mayChange;                          ///< states, in this step
  llvm::DenseMap<Attribute, Value> values; ///< of weights, by their symbols
  std::vector<Parameter> parameters;
  std::vector<StepNumbers> numbers; ///< by group
  std::vector<State> states;
};

struct AddOptimizerPass : impl::AddOptimizerPassBase<AddOptimizerPass> {
  using AddOptimizerPassBase::AddOptimizerPassBase;

  void runOnOperation() override {
    Location loc = UnknownLoc::get(&getContext());
    auto stop = [&](StringRef option, llvm::Error error) {
      emitError(loc) << option << ": " << llvm::toString(std::move(error));
      signalPassFailure();
    };
    auto standard = parseOptimizer(optimizer);
    if (!standard)
      return stop("--optimizer", standard.takeError());
    std::vector<Group> all;
    all.push_back({*standard, files::Globs("--group", {})});
    for (const std::string &text : *groups) {
      auto group = parseGroup(text, *standard);
      if (!group)
        return stop("--group", group.takeError());
      all.push_back({group->settings, files::Globs("--group", group->globs)});
      if (failed(all.back().globs.compile(loc)))
        return signalPassFailure();
    }
    func::FuncOp function = autodiff::getModelFunction(getOperation());
    if (!function ||
        failed(OptimizerBuilder(getOperation(), function, std::move(all),
                                clipNorm, microBatches, guardStates, onHost)
                   .run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::train

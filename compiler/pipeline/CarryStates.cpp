//===- CarryStates.cpp - What a step leaves for the next one --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/pipeline/Passes.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/NNDialect.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/MapVector.h"

namespace partita::pipeline {
#define GEN_PASS_DEF_CARRYSTATESPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

/// What stands for the `*` of a pattern in a name; a pattern without one is the
/// name itself.
std::optional<StringRef> matchStar(StringRef pattern, StringRef name) {
  auto [before, after] = pattern.split('*');
  if (before.size() == pattern.size())
    return pattern == name ? std::optional(StringRef()) : std::nullopt;
  if (name.size() < before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after))
    return std::nullopt;
  return name.drop_front(before.size()).drop_back(after.size());
}

/// "2x8xf32"
std::string describe(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : tensor.getShape())
    os << size << "x";
  os << tensor.getElementType();
  return text;
}

/// The dimension in which an output is longer than the input that it is for the
/// next step; nothing if they differ in anything else.
std::optional<unsigned> findGrown(Type input, Type output) {
  auto type = cast<RankedTensorType>(input),
       other = cast<RankedTensorType>(output);
  if (type.getElementType() != other.getElementType() ||
      type.getRank() != other.getRank())
    return std::nullopt;
  std::optional<unsigned> grown;
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    if (type.getDimSize(dim) == other.getDimSize(dim))
      continue;
    if (grown || type.getDimSize(dim) > other.getDimSize(dim))
      return std::nullopt;
    grown = dim;
  }
  return grown;
}

class Carrier {
public:
  Carrier(ModuleOp module, func::FuncOp function)
      : module(module), function(function), b(module.getContext()) {
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        inputs[name] = argument.getArgNumber();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto name =
              function.getResultAttrOfType<StringAttr>(i, nn::kNameAttr))
        outputs[name] = i;
  }

  LogicalResult run(ArrayRef<std::string> states) {
    for (const std::string &state : states)
      if (failed(addPairs(state)))
        return failure();
    if (pairs.size() == outputs.size())
      return emitError(function.getLoc())
             << "--state: every output of the model would be a state";
    addStates();
    module->setAttr(dist::kFullStepsAttr, b.getUnitAttr());
    module->setAttr(dist::kFullMicroBatchesAttr, b.getUnitAttr());
    setAxes();
    return success();
  }

private:
  std::string list(const llvm::MapVector<StringAttr, unsigned> &ports) const {
    std::vector<std::string> names;
    for (const auto &[name, number] : ports)
      names.push_back("'" + name.str() + "'");
    return abi::namesText(names);
  }

  /// "INPUT=OUTPUT". A `*` in both stands for the same text.
  LogicalResult addPairs(StringRef state) {
    auto [from, to] = state.split('=');
    auto fail = [&] {
      return emitError(function.getLoc()) << "--state " << state << ": ";
    };
    if (from.empty() || to.empty() || from.count('*') > 1 ||
        to.count('*') != from.count('*'))
      return fail() << "write it as INPUT=OUTPUT; both may have one *, for the "
                       "same text: past.*=present.*";
    bool any = false;
    for (const auto &[input, argument] : inputs) {
      const std::optional<StringRef> star = matchStar(from, input);
      if (!star)
        continue;
      any = true;
      std::string name = to.str();
      if (const size_t at = name.find('*'); at != std::string::npos)
        name.replace(at, 1, *star);
      auto output = outputs.find(b.getStringAttr(name));
      if (output == outputs.end())
        return fail() << "the model has no output '" << name
                      << "' for the input '" << input.getValue()
                      << "'; its outputs are " << list(outputs);
      const Type type = function.getArgumentTypes()[argument],
                 other = function.getResultTypes()[output->second];
      if (type != other && !findGrown(type, other))
        return fail() << "the input '" << input.getValue() << "' is "
                      << describe(type) << ", and the output '" << name << "' "
                      << describe(other)
                      << ": a state has one type and shape, or keeps the end "
                         "of an output that is longer in one dimension";
      if (!pairs.try_emplace(argument, output->second).second ||
          !taken.insert(output->second).second)
        return fail() << "another --state names '" << input.getValue()
                      << "' or '" << name << "', too";
    }
    if (!any)
      return fail() << "the model has no input '" << from
                    << "'; its inputs are " << list(inputs);
    return success();
  }

  void addStates() {
    Block &block = function.getBody().front();
    SymbolTable symbols(module);
    OpBuilder at(&block, block.begin());
    std::map<unsigned, FlatSymbolRefAttr> ofResult;
    llvm::BitVector erased(function.getNumArguments());
    // The first one comes first.
    for (auto [argument, result] : llvm::reverse(pairs)) {
      BlockArgument value = function.getArgument(argument);
      auto type = nn::getTensorType(value);
      const StringRef name =
          function.getArgAttrOfType<StringAttr>(argument, nn::kNameAttr);
      auto zero =
          DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType()));
      OpBuilder outside(module.getBody(), module.getBody()->begin());
      auto weight =
          nn::WeightOp::create(outside, value.getLoc(), name, name, type,
                               StringAttr(), IntegerAttr(), IntegerAttr(), zero,
                               /*state=*/true, /*part=*/TypeAttr());
      weight->setAttr(nn::kRoleAttr, b.getStringAttr("carried"));
      weight->remove();
      symbols.insert(weight, module.getBody()->begin());
      auto symbol = FlatSymbolRefAttr::get(weight.getSymNameAttr());
      auto parameter = nn::ParameterOp::create(at, value.getLoc(), type, symbol,
                                               b.getUnitAttr());
      parameter->setAttr(nn::kCarriedAttr, b.getUnitAttr());
      value.replaceAllUsesWith(parameter);
      ofResult[result] = symbol;
      erased.set(argument);
    }
    (void)function.eraseArguments(erased);
    moveBack(ofResult);
  }

  /// Of an output that is longer than the state, what comes last.
  Value keepEnd(Value value, FlatSymbolRefAttr state) {
    auto weight =
        SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(module, state);
    auto type = cast<RankedTensorType>(weight.getType()),
         grown = nn::getTensorType(value);
    const std::optional<unsigned> dim = findGrown(type, grown);
    if (!dim)
      return value;
    SmallVector<int64_t> starts(type.getRank()), strides(type.getRank(), 1);
    starts[*dim] = grown.getDimSize(*dim) - type.getDimSize(*dim);
    OpBuilder at(function.getBody().front().getTerminator());
    return nn::SliceOp::create(at, value.getLoc(), type, value, starts,
                               grown.getShape(), strides);
  }

  /// New values come behind the outputs and the checks.
  void moveBack(const std::map<unsigned, FlatSymbolRefAttr> &states) {
    Operation *end = function.getBody().front().getTerminator();
    SmallVector<Value> values, last;
    SmallVector<DictionaryAttr> attributes, lastAttributes;
    for (OpOperand &result : end->getOpOperands())
      if (auto state = states.find(result.getOperandNumber());
          state != states.end()) {
        last.push_back(keepEnd(result.get(), state->second));
        lastAttributes.push_back(
            b.getDictionaryAttr(b.getNamedAttr(nn::kStateAttr, state->second)));
      } else {
        DictionaryAttr own =
            function.getResultAttrDict(result.getOperandNumber());
        values.push_back(result.get());
        attributes.push_back(own ? own : b.getDictionaryAttr({}));
      }
    values.append(last);
    attributes.append(lastAttributes);
    setResults(function, values, attributes);
  }

  /// Steps follow one another along dimension 0 of inputs and outputs, or where
  /// the inputs say it.
  void setAxes() {
    std::string why;
    const std::string prefix = "its states go from step to step, and ";
    auto axisOf = [&](unsigned i) {
      return function.getArgAttrOfType<IntegerAttr>(i, nn::kBatchAxisAttr);
    };
    const unsigned count = function.getNumArguments();
    if (llvm::none_of(llvm::seq(count), axisOf))
      for (unsigned i = 0; i < count; ++i)
        if (nn::getTensorType(function.getArgument(i)).getRank() > 0)
          function.setArgAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
    int64_t samples = -1;
    for (unsigned i = 0; i < count && why.empty(); ++i)
      if (IntegerAttr axis = axisOf(i)) {
        const int64_t size = nn::getTensorType(function.getArgument(i))
                                 .getDimSize(axis.getInt());
        if (samples >= 0 && size != samples)
          why = "the inputs differ in the size of dimension 0";
        samples = size;
      }
    if (samples < 0)
      why = "no input has a dimension";
    SmallVector<int64_t> axes;
    for (const auto &[name, number] : outputs) {
      if (taken.contains(number) || !why.empty())
        continue;
      auto type =
          cast<RankedTensorType>(function.getResultTypes()[axes.size()]);
      if (type.getRank() < 1 || type.getDimSize(0) != samples)
        why = "dimension 0 of the output '" + name.str() +
              "' has another size than that of the inputs";
      axes.push_back(0);
    }
    if (!why.empty())
      axes.clear();
    analysis::setSampleAxes(function, axes, why.empty() ? why : prefix + why);
    if (!why.empty())
      emitRemark(function.getLoc())
          << "a run computes one step: " << prefix << why;
  }

  ModuleOp module;
  func::FuncOp function;
  Builder b;
  llvm::MapVector<StringAttr, unsigned> inputs, outputs; // numbers, by name
  llvm::MapVector<unsigned, unsigned> pairs;             // results, by argument
  llvm::DenseSet<unsigned> taken;                        // results
};

struct CarryStatesPass : impl::CarryStatesPassBase<CarryStatesPass> {
  using CarryStatesPassBase::CarryStatesPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getModelFunction(getOperation());
    if (failed(function) ||
        failed(Carrier(getOperation(), *function)
                   .run(llvm::to_vector_of<std::string>(states))))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::pipeline

//===- DistChooseShardings.cpp - Shardings by the cost model --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/ShardingCosts.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTCHOOSESHARDINGSPASS
#include "compiler/shard/Passes.h.inc"

namespace {

/// Weights with fewer bytes are not worth a thought.
constexpr int64_t kLeastBytes = 4096;
/// Weights of several layers of the same inputs, one after another.
constexpr int64_t kMostBlocks = 3;
/// A cut must save so much of the time of what it changes.
constexpr double kLeastGain = 0.02;

/// Which factors of a weight may be cut.
enum class Strategy {
  result, ///< those that its op's result has: its parts make parts of it
  any     ///< also those that are summed over
};

/// Decides for one weight after the other. What is best for the first may be
/// bad for the whole, so there are several strategies, of which the best
/// counts.
class Chooser {
public:
  Chooser(func::FuncOp function, const CostModel &machine, Strategy strategy)
      : block(function.getBody().front()), strategy(strategy),
        propagation(function), costs(propagation, machine) {}

  /// The time of the model, as it is cut then.
  double choose() {
    seedKnown();
    for (StringAttr axis : propagation.getAxes().getNames())
      if (!used.contains(axis))
        choose(axis);
    llvm::SetVector<Operation *> all;
    for (Operation &op : block.without_terminator())
      all.insert(&op);
    return costs.getNs(all);
  }

  /// Axes along which nothing is cut.
  SmallVector<StringAttr> getUnused() {
    llvm::DenseSet<StringAttr> cut = used;
    for (auto parameter : block.getOps<nn::ParameterOp>())
      for (const DimSharding &dim : propagation.getSharding(parameter))
        cut.insert_range(dim.axes);
    for (Operation *op : seeded)
      for (const DimSharding &dim : propagation.getSharding(op->getResult(0)))
        cut.insert_range(dim.axes);
    return llvm::to_vector(llvm::make_filter_range(
        propagation.getAxes().getNames(),
        [&](StringAttr axis) { return !cut.contains(axis); }));
  }

  void write() {
    for (auto parameter : block.getOps<nn::ParameterOp>())
      setSharding(parameter, propagation.getSharding(parameter));
    // Where a weight is computed from others first, its reader says it.
    for (Operation *op : seeded)
      setSharding(op->getResult(0), propagation.getSharding(op->getResult(0)));
  }

private:
  void seedKnown() {
    auto seed = [&](Value value) {
      const Sharding sharding = getSharding(value);
      for (const DimSharding &cut : sharding)
        used.insert_range(cut.axes);
      propagation.seedWritten(value);
    };
    for (BlockArgument argument : block.getArguments())
      seed(argument);
    for (Operation &op : block.without_terminator())
      for (Value result : op.getResults())
        seed(result);
    propagation.run();
    propagation.keep();
  }

  /// What only moves elements comes last: a table's cut spares little, and
  /// would decide how all is cut that comes behind it.
  void choose(StringAttr axis) {
    for (const bool moves : {false, true})
      for (Operation &op : block.without_terminator()) {
        const nn::ShardingRule *rule = propagation.getRule(&op);
        if (!rule || rates.isLoad(&op) || onlyMoves(op) != moves)
          continue;
        for (OpOperand &operand : op.getOpOperands())
          if (isWeight(operand.get()) &&
              isWhole(propagation.getSharding(operand.get())))
            cutWeight(operand, *rule, axis);
      }
  }

  static bool onlyMoves(Operation &op) {
    auto costed = dyn_cast<nn::CostOpInterface>(op);
    return costed && costed.getCost().kind == nn::CostKind::movement;
  }

  bool isWeight(Value value) {
    auto parameter = value.getDefiningOp<nn::ParameterOp>();
    const bool isKnown =
        rates.isLoad(value) && !value.getDefiningOp<nn::ConstantOp>();
    return (isKnown || (parameter && parameter.getState())) &&
           nn::getByteSize(value.getType()) >= kLeastBytes;
  }

  /// Tries each factor of an operand, and keeps the best if it is worth it.
  void cutWeight(OpOperand &operand, const nn::ShardingRule &rule,
                 StringAttr axis) {
    const nn::DimFactors &dims = rule.operands[operand.getOperandNumber()];
    Sharding best;
    double gain = 0;
    // Weights that are summed over are those worth cutting.
    if (llvm::none_of(dims, [&](ArrayRef<int64_t> list) {
          return llvm::any_of(list, [&](int64_t factor) {
            return rule.factors[factor].kind == nn::FactorKind::reduction;
          });
        }))
      return;
    for (auto [dim, list] : llvm::enumerate(dims))
      for (int64_t factor : list) {
        const nn::FactorKind kind = rule.factors[factor].kind;
        if (kind != nn::FactorKind::pass_through &&
            (strategy == Strategy::result || kind != nn::FactorKind::reduction))
          continue;
        for (int64_t blocks = 1; blocks <= kMostBlocks; ++blocks) {
          const DimSharding cut{AxisList{axis}, blocks};
          if (!canShard(rule, factor, cut, propagation.getAxes()) ||
              (blocks > 1 && list.size() > 1))
            continue;
          Sharding sharding(dims.size());
          sharding[dim] = cut;
          if (double saved = trySharding(operand.get(), sharding);
              saved > gain) {
            gain = saved;
            best = sharding;
          }
        }
      }
    if (gain <= 0)
      return;
    propagation.seed(operand.get(), best);
    propagation.run();
    propagation.keep();
    if (Operation *op = operand.get().getDefiningOp())
      seeded.insert(op);
  }

  /// What the graph takes less with a cut, in nanoseconds; 0 if that is not
  /// worth it. Rounds the parts up where heads and the like need that.
  double trySharding(Value value, Sharding &sharding) {
    llvm::SetVector<Operation *> touched = spread(value, sharding);
    const SmallVector<NeededAlignment> needed =
        propagation.getNeededAlignments(touched.getArrayRef());
    if (!needed.empty()) {
      Sharding rounded = propagation.withAlignments(value, sharding, needed);
      if (rounded != sharding) {
        propagation.undo();
        llvm::SetVector<Operation *> others = spread(value, rounded);
        if (propagation.getNeededAlignments(others.getArrayRef()).size() <
            needed.size()) {
          sharding = rounded;
          touched = others;
        } else {
          propagation.undo();
          spread(value, sharding);
        }
      }
    }
    const double after = costs.getNs(touched);
    propagation.undo();
    const double before = costs.getNs(touched);
    const double saved = before - after;
    return saved > kLeastGain * before ? saved : 0;
  }

  /// Propagates a cut. Returns the ops that it concerns.
  llvm::SetVector<Operation *> spread(Value value, const Sharding &sharding) {
    propagation.seed(value, sharding);
    propagation.run();
    llvm::SetVector<Operation *> touched;
    for (Value changed : propagation.getChanged()) {
      if (Operation *op = changed.getDefiningOp())
        touched.insert(op);
      for (Operation *user : changed.getUsers())
        if (!user->hasTrait<OpTrait::IsTerminator>())
          touched.insert(user);
    }
    return touched;
  }

  Block &block;
  const Strategy strategy;
  Propagation propagation;
  ShardingCosts costs;
  analysis::Rates rates;
  llvm::DenseSet<StringAttr> used; ///< axes along which something is cut
  llvm::SetVector<Operation *> seeded;
};

struct DistChooseShardingsPass
    : impl::DistChooseShardingsPassBase<DistChooseShardingsPass> {
  using DistChooseShardingsPassBase::DistChooseShardingsPassBase;

  LogicalResult run(func::FuncOp function) override {
    if (Axes(function).getNames().empty() || takeShards(function))
      return success();
    auto models = PARTITA_TRY(CostModels::get(function));
    std::unique_ptr<Chooser> best;
    double leastNs = 0;
    for (Strategy strategy : {Strategy::result, Strategy::any}) {
      auto chooser =
          std::make_unique<Chooser>(function, models->at(0), strategy);
      const double ns = chooser->choose();
      if (best && ns >= leastNs)
        continue;
      leastNs = ns;
      best = std::move(chooser);
    }
    for (StringAttr axis : best->getUnused())
      emitRemark(getOperation().getLoc())
          << "no weight is worth cutting along the axis '" << axis.getValue()
          << "': its devices all compute the same, since sending would take "
             "longer than what it spares; `shard` of a partition file cuts "
             "weights all the same";
    best->write();
    return success();
  }

  /// Cuts weights as another plan of the artifact has them: both share states.
  static bool takeShards(func::FuncOp function) {
    auto shards = function->getAttrOfType<DictionaryAttr>(kShardsAttr);
    if (!shards)
      return false;
    SymbolTable symbols(function->getParentOfType<ModuleOp>());
    for (auto parameter : function.getOps<nn::ParameterOp>())
      if (auto weight = symbols.lookup<nn::WeightOp>(parameter.getWeight()))
        fixSharding(parameter, getSharding(shards.getAs<dist::ShardingAttr>(
                                   weight.getOrigin())));
    return true;
  }
};

} // namespace
} // namespace partita::shard

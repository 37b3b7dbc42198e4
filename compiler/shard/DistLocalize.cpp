//===- DistLocalize.cpp - What one device computes ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Reshards.h"

#include <map>

namespace partita::shard {
#define GEN_PASS_DEF_DISTLOCALIZEPASS
#include "compiler/shard/Passes.h.inc"
} // namespace partita::shard

using namespace mlir;

namespace partita::shard {
namespace {

class Localizer {
public:
  Localizer(func::FuncOp function, const pipeline::MachineModel &machine)
      : function(function), machine(machine), axes(function),
        builder(function.getContext()) {}

  LogicalResult run() {
    Block &block = function.getBody().front();
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (BlockArgument argument : block.getArguments())
      takeArgument(argument);
    for (Operation *op : ops)
      if (!rates.isLoad(op) && failed(visit(op)))
        return failure();
    for (OpOperand &operand : block.getTerminator()->getOpOperands())
      if (Value local = locals.lookup(operand.get()))
        operand.set(local);
    for (BlockArgument argument : block.getArguments())
      function.removeArgAttr(argument.getArgNumber(), dist::kShardingAttr);
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty() && isMemoryEffectFree(op))
        op->erase();
      else
        op->removeAttr(dist::kShardingAttr);
    return success();
  }

private:
  //===--- Values of a micro-batch ----------------------------------------===//

  /// The host feeds whole inputs.
  void takeArgument(BlockArgument argument) {
    const Cuts cuts = getCuts(argument);
    builder.setInsertionPointToStart(argument.getOwner());
    if (!isWhole(cuts))
      locals[argument] = shardAll(argument, cuts, argument.getLoc());
  }

  Value getLocal(Value value) {
    Value local = locals.lookup(value);
    return local ? local : value;
  }

  LogicalResult visit(Operation *op) {
    builder.setInsertionPoint(op);
    if (auto reshard = dyn_cast<dist::ReshardOp>(op)) {
      locals[reshard] = lower(reshard);
      return success();
    }
    auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
    nn::ShardingRule rule;
    FactorCuts factors;
    if (shardable) {
      rule = shardable.getShardingRule();
      if (failed(findFactors(op, rule, factors)))
        return failure();
    }
    SmallVector<Value> operands;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      Cuts needed;
      if (shardable)
        needed = projectCuts(rule, rule.operands[index], factors);
      operands.push_back(rates.isLoad(operand) ? getLoaded(operand, needed)
                                               : getLocal(operand));
    }
    builder.setInsertionPoint(op);
    return make(op, rule, factors, operands);
  }

  /// From how the operands and the result are cut.
  LogicalResult findFactors(Operation *op, const nn::ShardingRule &rule,
                            FactorCuts &factors) {
    factors.resize(rule.factors.size());
    bool isAll = true;
    dist::ShardingAttr sharding = op->getNumResults() == 1
                                      ? getSharding(op->getResult(0))
                                      : dist::ShardingAttr();
    if (sharding)
      isAll = addCuts(rule, rule.results[0], getCuts(sharding), axes, factors);
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      if (!rates.isLoad(operand))
        isAll &= addCuts(rule, dims, getCuts(operand), axes, factors);
    // A factor that only weights have is cut where the result is partial.
    if (sharding)
      for (dist::PartialAttr partial : sharding.getPartial())
        isAll &= addPartial(op, rule, partial, factors);
    if (isAll)
      return success();
    return op->emitError("'")
           << nn::getNodeName(op)
           << "' cannot compute with operands that are cut so: run "
              "--dist-reshard before";
  }

  /// Whether some factor is cut along the axis of a partial sum. If none is by
  /// the operands that a micro-batch brings, it is one of the weights'.
  bool addPartial(Operation *op, const nn::ShardingRule &rule,
                  dist::PartialAttr partial, FactorCuts &factors) {
    const auto axis = StringAttr::get(op->getContext(), partial.getAxis());
    for (auto [factor, cut] : llvm::enumerate(factors))
      if (llvm::is_contained(cut.axes, axis))
        return rule.factors[factor].kind == nn::FactorKind::reduction;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      if (rates.isLoad(operand))
        (void)addCuts(rule, dims, getCuts(operand), axes, factors);
    return llvm::any_of(factors, [&](const DimCut &cut) {
      return llvm::is_contained(cut.axes, axis);
    });
  }

  SmallVector<int64_t> countShards(const FactorCuts &factors) {
    return llvm::map_to_vector(
        factors, [&](const DimCut &cut) { return axes.getSize(cut.axes); });
  }

  LogicalResult make(Operation *op, const nn::ShardingRule &rule,
                     const FactorCuts &factors, ArrayRef<Value> operands) {
    Operation *local;
    if (isWhole(factors)) {
      local = builder.clone(*op);
      local->setOperands(operands);
    } else {
      local = cast<nn::ShardableOpInterface>(op).buildLocal(
          builder, rule, countShards(factors), operands);
      local->setLoc(op->getLoc());
      for (NamedAttribute attr : op->getDiscardableAttrs())
        local->setDiscardableAttr(attr.getName(), attr.getValue());
    }
    local->removeAttr(dist::kShardingAttr);
    for (auto [result, value] :
         llvm::zip(op->getResults(), local->getResults()))
      locals[result] = value;
    return success();
  }

  //===--- Reshards -------------------------------------------------------===//

  Value shard(Value value, int64_t dim, const DimCut &cut, Location loc) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = llvm::divideCeil(shape[dim], axes.getSize(cut.axes));
    return dist::ShardOp::create(builder, loc, type.clone(shape), value, dim,
                                 cut.blocks, names(cut.axes));
  }

  Value shardAll(Value value, const Cuts &cuts, Location loc) {
    for (auto [dim, cut] : llvm::enumerate(cuts))
      if (!cut.isWhole())
        value = shard(value, dim, cut, loc);
    return value;
  }

  ArrayAttr names(ArrayRef<StringAttr> list) {
    return builder.getArrayAttr(
        SmallVector<Attribute>(list.begin(), list.end()));
  }

  Value lower(dist::ReshardOp op) {
    const dist::ShardingAttr source = getSharding(op.getX());
    Layout from{getCuts(source), {}};
    if (source)
      from.partials.assign(source.getPartial().begin(),
                           source.getPartial().end());
    Value value = getLocal(op.getX());
    // An input is there as a whole.
    if (isa<BlockArgument>(op.getX())) {
      from = {};
      value = op.getX();
    }
    const auto type = cast<RankedTensorType>(op.getType());
    return buildReshard(
        builder, op.getLoc(),
        planReshard(type, from, getCuts(op.getResult()), axes, machine), type,
        value, axes, op.getReasonAttr());
  }

  //===--- What depends on weights only -----------------------------------===//

  /// A value that is computed at load, cut so: computed from parts of what it
  /// depends on, or else a part of the whole.
  Value getLoaded(Value value, const Cuts &cuts) {
    if (isWhole(cuts))
      return value;
    const int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    const Attribute key = getAttr(value.getContext(), cuts, rank);
    Value &made =
        loaded[{value.getAsOpaquePointer(), key.getAsOpaquePointer()}];
    if (made)
      return made;
    Operation *op = value.getDefiningOp();
    Value local = computeLoaded(op, cuts);
    if (!local) {
      builder.setInsertionPointAfter(op);
      local = shardAll(value, cuts, op->getLoc());
    }
    return loaded[{value.getAsOpaquePointer(), key.getAsOpaquePointer()}] =
               local;
  }

  Value computeLoaded(Operation *op, const Cuts &cuts) {
    auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
    if (!shardable || isa<nn::ParameterOp>(op) || op->getNumResults() != 1)
      return {};
    const nn::ShardingRule rule = shardable.getShardingRule();
    FactorCuts factors;
    if (!addCuts(rule, rule.results[0], cuts, axes, factors) ||
        !isSame(projectCuts(rule, rule.results[0], factors), cuts))
      return {};
    SmallVector<Value> operands;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      operands.push_back(getLoaded(operand, projectCuts(rule, dims, factors)));
    builder.setInsertionPointAfter(op);
    Operation *local =
        shardable.buildLocal(builder, rule, countShards(factors), operands);
    local->setLoc(op->getLoc());
    local->removeAttr(dist::kShardingAttr);
    return local->getResult(0);
  }

  func::FuncOp function;
  const pipeline::MachineModel &machine;
  const Axes axes;
  OpBuilder builder;
  analysis::Rates rates;
  llvm::DenseMap<Value, Value> locals; ///< of a micro-batch
  std::map<std::pair<const void *, const void *>, Value> loaded;
};

struct DistLocalizePass : impl::DistLocalizePassBase<DistLocalizePass> {
  using DistLocalizePassBase::DistLocalizePassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function =
        pipeline::getModelFunction(getOperation());
    if (failed(function))
      return signalPassFailure();
    if (Axes(*function).empty())
      return;
    FailureOr<pipeline::MachineModel> model =
        loadMachine(*function, machine, threads);
    if (failed(model) || failed(Localizer(*function, *model).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::shard

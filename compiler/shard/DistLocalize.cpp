//===- DistLocalize.cpp - What one device computes ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Reshards.h"
#include "dialects/nn/fold/EmptyTensors.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTLOCALIZEPASS
#include "compiler/shard/Passes.h.inc"

namespace {

class Localizer {
public:
  Localizer(func::FuncOp function, const CostModel &machine)
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
    // New values of states are parts, too.
    function.setFunctionType(
        FunctionType::get(function.getContext(), function.getArgumentTypes(),
                          block.getTerminator()->getOperandTypes()));
    for (BlockArgument argument : block.getArguments())
      function.removeArgAttr(argument.getArgNumber(), dist::kShardingAttr);
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty() && isMemoryEffectFree(op))
        op->erase();
      else
        removeNotes(op);
    return success();
  }

private:
  //===--- Values of a micro-batch ----------------------------------------===//

  /// The host feeds whole inputs.
  void takeArgument(BlockArgument argument) {
    const Sharding sharding = getSharding(argument);
    builder.setInsertionPointToStart(argument.getOwner());
    if (!isWhole(sharding))
      locals[argument] = shardAll(argument, sharding, argument.getLoc());
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
    if (auto parameter = dyn_cast<nn::ParameterOp>(op))
      return takeState(parameter);
    auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
    nn::ShardingRule rule;
    FactorShardings factors;
    if (shardable) {
      rule = shardable.getShardingRule();
      PARTITA_TRY(findFactors(op, rule, factors));
    }
    SmallVector<Value> operands;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      Sharding needed;
      if (shardable)
        needed = projectSharding(rule, rule.operands[index], factors, axes);
      operands.push_back(rates.isLoad(operand) ? getLoaded(operand, needed)
                                               : getLocal(operand));
    }
    builder.setInsertionPoint(op);
    return make(op, rule, factors, operands);
  }

  /// A device has its part of a state, and nothing else of it.
  LogicalResult takeState(nn::ParameterOp parameter) {
    const Sharding sharding = getSharding(parameter);
    const RankedTensorType type =
        getLocalType(nn::getTensorType(parameter), sharding, axes);
    auto state = SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
        function, parameter.getWeightAttr());
    if (!isWhole(sharding)) {
      state.setPart(type);
      state->setAttr(dist::kShardingAttr,
                     getAttr(function.getContext(), sharding, type.getRank()));
    }
    if (state.getPartType() != type)
      return parameter.emitError("'")
             << state.getOrigin() << "' is cut in several ways";
    locals[parameter] = nn::ParameterOp::create(builder, parameter.getLoc(),
                                                type, parameter.getWeightAttr(),
                                                parameter.getStateAttr());
    if (Attribute carried = parameter->getAttr(nn::kCarriedAttr))
      locals[parameter].getDefiningOp()->setAttr(nn::kCarriedAttr, carried);
    zeros.insert(locals[parameter]);
    return success();
  }

  /// From how the operands and the result are cut.
  LogicalResult findFactors(Operation *op, const nn::ShardingRule &rule,
                            FactorShardings &factors) {
    factors.resize(rule.factors.size());
    bool isAll = true;
    dist::ShardingAttr sharding = op->getNumResults() == 1
                                      ? getShardingAttr(op->getResult(0))
                                      : dist::ShardingAttr();
    if (sharding)
      isAll = addSharding(rule, rule.results[0], getSharding(sharding), axes,
                          factors);
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      if (!rates.isLoad(operand))
        isAll &= addSharding(rule, dims, getSharding(operand), axes, factors);
    // A factor that only weights have is cut where the result is partial.
    if (sharding)
      for (dist::PartialAttr partial : sharding.getPartial())
        isAll &= isOwnSum(op, partial) || isOfOperand(op, partial) ||
                 addPartial(op, rule, partial, factors);
    if (isAll)
      return success();
    return op->emitError("'")
           << nn::getNodeName(op)
           << "' cannot compute with operands that are cut so: run "
              "--dist-reshard before";
  }

  /// Whether a sum is partial because each replica has its own micro-batches.
  bool isOwnSum(Operation *op, dist::PartialAttr partial) const {
    return axes.getData() && isOwnOfReplica(op) &&
           partial.getAxis() == axes.getData().getValue();
  }

  /// Whether a sum is partial because an operand is.
  static bool isOfOperand(Operation *op, dist::PartialAttr partial) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      dist::ShardingAttr sharding = getShardingAttr(operand);
      return sharding && llvm::is_contained(sharding.getPartial(), partial);
    });
  }

  /// Whether some factor is cut along the axis of a partial sum. If none is by
  /// the operands that a micro-batch brings, it is one of the weights'.
  bool addPartial(Operation *op, const nn::ShardingRule &rule,
                  dist::PartialAttr partial, FactorShardings &factors) {
    const auto axis = StringAttr::get(op->getContext(), partial.getAxis());
    for (auto [factor, cut] : llvm::enumerate(factors))
      if (llvm::is_contained(cut.axes, axis))
        return rule.factors[factor].kind == nn::FactorKind::reduction;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      if (rates.isLoad(operand))
        (void)addSharding(rule, dims, getSharding(operand), axes, factors);
    return llvm::any_of(factors, [&](const DimSharding &cut) {
      return llvm::is_contained(cut.axes, axis);
    });
  }

  LogicalResult make(Operation *op, const nn::ShardingRule &rule,
                     const FactorShardings &factors, ArrayRef<Value> operands) {
    Operation *local;
    if (isWhole(factors)) {
      local = builder.clone(*op);
      local->setOperands(operands);
    } else {
      SmallVector<Value> parts(operands);
      maskOperands(op, rule, factors, parts);
      local = buildLocal(op, rule, factors, parts);
    }
    removeNotes(local);
    noteZeros(op, operands, local);
    for (auto [result, value] :
         llvm::zip(op->getResults(), local->getResults()))
      locals[result] = value;
    return success();
  }

  /// What one device computes of an op. All ops of it have the op's
  /// annotations.
  Operation *buildLocal(Operation *op, const nn::ShardingRule &rule,
                        const FactorShardings &factors,
                        ArrayRef<Value> operands) {
    SmallVector<Value> begins(factors.size());
    for (auto [factor, cut] : llvm::enumerate(factors))
      if (rule.factors[factor].needs_begin && !cut.isWhole())
        begins[factor] = getBegin(rule.factors[factor].size, cut, op->getLoc());
    Annotations annotations(op);
    builder.setListener(&annotations);
    Operation *local = cast<nn::ShardableOpInterface>(op).buildLocal(
        builder, rule, getPartSizes(rule, factors, axes), operands, begins);
    builder.setListener(nullptr);
    return local;
  }

  /// How an op was cut is said by its types then.
  static void removeNotes(Operation *op) {
    op->removeAttr(dist::kShardingAttr);
    op->removeAttr(dist::kWholeAttr);
    op->removeAttr(kOwnAttr);
    op->removeAttr(kJoinedAttr);
  }

  struct Annotations : OpBuilder::Listener {
    /// `together`: with what is computed together with `of`.
    explicit Annotations(Operation *of, bool together = true)
        : of(of), together(together) {}

    void notifyOperationInserted(Operation *op,
                                 OpBuilder::InsertPoint) override {
      op->setLoc(of->getLoc());
      for (NamedAttribute attr : of->getDiscardableAttrs())
        op->setDiscardableAttr(attr.getName(), attr.getValue());
      removeNotes(op);
      if (!together)
        op->removeDiscardableAttr(nn::kClusterAttr);
    }

    Operation *of;
    bool together;
  };

  /// Where a device's part of a dimension begins, a scalar. It is read by the
  /// device's coordinate, as its part of the list of all begins.
  Value getBegin(int64_t size, const DimSharding &cut, Location loc) {
    const int64_t devices = axes.getSize(cut.axes),
                  part = getPartSize(size, cut, axes);
    SmallVector<int64_t> begins;
    for (int64_t device = 0; device < devices; ++device)
      begins.push_back(device * part);
    auto scalar = RankedTensorType::get({}, builder.getI64Type());
    Value all = nn::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(scalar.clone({devices}),
                               ArrayRef<int64_t>(begins)));
    return nn::ReshapeOp::create(builder, loc, scalar,
                                 shard(all, 0, {cut.axes}, loc));
  }

  //===--- Masks ----------------------------------------------------------===//

  /// What is summed over, and was rounded up, must hold the neutral element
  /// beyond the end.
  void maskOperands(Operation *op, const nn::ShardingRule &rule,
                    const FactorShardings &factors,
                    MutableArrayRef<Value> operands) {
    for (auto [factor, cut] : llvm::enumerate(factors)) {
      const nn::Factor &reduced = rule.factors[factor];
      if (reduced.kind != nn::FactorKind::reduction || cut.isWhole() ||
          isEven(reduced.size, cut, axes))
        continue;
      for (auto [index, operand] : llvm::enumerate(operands)) {
        const nn::DimFactors &dims = rule.operands[index];
        const Sharding sharding = projectSharding(rule, dims, factors, axes);
        for (auto [dim, list] : llvm::enumerate(dims))
          if (llvm::is_contained(list, factor))
            operand =
                mask(op, operand, dim,
                     cast<RankedTensorType>(op->getOperand(index).getType())
                         .getDimSize(dim),
                     sharding[dim], reduced.combine);
      }
    }
  }

  /// `size` is that of the whole dimension.
  Value mask(Operation *op, Value value, int64_t dim, int64_t size,
             const DimSharding &cut, nn::ReduceKind combine) {
    const Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    const DenseElementsAttr neutral = nn::getNeutralTensor(combine, type);
    if (zeros.contains(value) && isZero(neutral))
      return value;
    // A library does not compute it.
    Annotations annotations(op, /*together=*/false);
    builder.setListener(&annotations);
    // A part of a list of "true" that goes beyond the end has "false" there.
    const auto all = RankedTensorType::get({size}, builder.getI1Type());
    Value isInside = shard(
        nn::ConstantOp::create(builder, loc, DenseElementsAttr::get(all, true)),
        0, cut, loc);
    Value keep =
        nn::BroadcastOp::create(builder, loc, type.clone(builder.getI1Type()),
                                isInside, ArrayRef<int64_t>(dim));
    value = nn::SelectOp::create(builder, loc, keep, value,
                                 nn::ConstantOp::create(builder, loc, neutral));
    builder.setListener(nullptr);
    return value;
  }

  static bool isZero(DenseElementsAttr splat) {
    if (isa<FloatType>(splat.getElementType()))
      return splat.getSplatValue<APFloat>().isZero();
    return splat.getSplatValue<APInt>().isZero();
  }

  /// What only moves elements keeps zeros beyond the end.
  void noteZeros(Operation *op, ArrayRef<Value> operands, Operation *local) {
    auto view = dyn_cast<nn::ViewOpInterface>(op);
    if (view && view.keepsElements() && zeros.contains(operands[0]))
      zeros.insert(local->getResult(0));
  }

  //===--- Reshards -------------------------------------------------------===//

  Value shard(Value value, int64_t dim, const DimSharding &cut, Location loc) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = getPartSize(shape[dim], cut, axes);
    return dist::ShardOp::create(builder, loc, type.clone(shape), value, dim,
                                 cut.blocks, names(cut.axes));
  }

  /// Parts of a tensor that is there as a whole.
  Value shardAll(Value value, const Sharding &sharding, Location loc) {
    for (auto [dim, cut] : llvm::enumerate(sharding))
      if (!cut.isWhole())
        value = shard(value, dim, cut, loc);
    zeros.insert(value);
    return value;
  }

  ArrayAttr names(ArrayRef<StringAttr> list) {
    return builder.getArrayAttr(
        SmallVector<Attribute>(list.begin(), list.end()));
  }

  Value lower(dist::ReshardOp op) {
    const dist::ShardingAttr source = getShardingAttr(op.getX());
    Layout from{getSharding(source), {}};
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
        chooseReshard(type, from, getSharding(op.getResult()), axes, machine),
        value, axes, op.getReasonAttr());
  }

  //===--- What depends on weights only -----------------------------------===//

  /// A value that is computed at load, cut so: computed from parts of what it
  /// depends on, or else a part of the whole.
  Value getLoaded(Value value, const Sharding &sharding) {
    if (isWhole(sharding))
      return value;
    const Attribute cut = getAttr(value.getContext(), sharding,
                                  nn::getTensorType(value).getRank());
    if (Value made = loaded.lookup({value, cut}))
      return made;
    Operation *op = value.getDefiningOp();
    Value local = computeLoaded(op, sharding);
    if (!local) {
      builder.setInsertionPointAfter(op);
      local = shardAll(value, sharding, op->getLoc());
    }
    return loaded[{value, cut}] = local;
  }

  Value computeLoaded(Operation *op, const Sharding &sharding) {
    auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
    if (!shardable || isa<nn::ParameterOp>(op) || op->getNumResults() != 1)
      return {};
    const nn::ShardingRule rule = shardable.getShardingRule();
    FactorShardings factors;
    if (!addSharding(rule, rule.results[0], sharding, axes, factors) ||
        !isSame(projectSharding(rule, rule.results[0], factors, axes),
                sharding))
      return {};
    SmallVector<Value> operands;
    for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands))
      operands.push_back(
          getLoaded(operand, projectSharding(rule, dims, factors, axes)));
    builder.setInsertionPointAfter(op);
    Operation *local = buildLocal(op, rule, factors, operands);
    noteZeros(op, operands, local);
    return local->getResult(0);
  }

  func::FuncOp function;
  const CostModel &machine;
  const Axes axes;
  OpBuilder builder;
  analysis::Rates rates;
  llvm::DenseMap<Value, Value> locals; ///< of a micro-batch
  llvm::DenseMap<std::pair<Value, Attribute>, Value> loaded;
  llvm::DenseSet<Value> zeros; ///< values that hold 0 beyond the end
};

struct DistLocalizePass : impl::DistLocalizePassBase<DistLocalizePass> {
  using DistLocalizePassBase::DistLocalizePassBase;

  LogicalResult run(func::FuncOp function) override {
    if (Axes(function).empty())
      return success();
    auto models = PARTITA_TRY(CostModels::get(function));
    return Localizer(function, models->at(0)).run();
  }
};

} // namespace
} // namespace partita::shard

//===- ReductionRules.cpp - Rules of what combines elements ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

using namespace mlir;

namespace partita::nn {

/// All but one dimension pass through.
static ShardingRule ruleOfRows(Operation *op, int64_t alongDim) {
  ShardingRule rule = sameShapeRule(op, [&](int64_t dim) {
    return dim == alongDim ? FactorKind::replicated : FactorKind::pass_through;
  });
  rule.can_pad = true;
  return rule;
}

ShardingRule SoftmaxOp::getShardingRule() {
  return ruleOfRows(*this, getDim());
}

ShardingRule ScanOp::getShardingRule() { return ruleOfRows(*this, getDim()); }

ShardingRule ReduceOp::getShardingRule() {
  ShardingRule rule;
  DimFactors from, to;
  for (auto [dim, size] : llvm::enumerate(getX().getType().getShape())) {
    if (llvm::is_contained(getDims(), static_cast<int64_t>(dim))) {
      from.push_back({rule.addFactor(size, FactorKind::reduction, getKind())});
      continue;
    }
    from.push_back({rule.addFactor(size)});
    to.push_back(from.back());
  }
  rule.operands = {from};
  rule.results = {to};
  rule.can_pad = true;
  return rule;
}

/// Dimensions along which each window is one element pass through.
template <typename WindowOp> static ShardingRule ruleOfWindows(WindowOp op) {
  return movingRule(op, [&](int64_t dim) {
    return op.getWindow()[dim] == 1 && op.getStrides()[dim] == 1 &&
           op.getPadsLow()[dim] == 0 && op.getPadsHigh()[dim] == 0;
  });
}

ShardingRule WindowReduceOp::getShardingRule() { return ruleOfWindows(*this); }

ShardingRule WindowArgMaxOp::getShardingRule() {
  ShardingRule rule = ruleOfWindows(*this);
  if (getMax())
    rule.operands[1] = rule.results[0];
  return rule;
}

ShardingRule WindowSpreadOp::getShardingRule() {
  ShardingRule rule = ruleOfWindows(*this);
  rule.operands[1] = rule.operands[0];
  return rule;
}

ShardingRule TopKOp::getShardingRule() {
  return movingRule(
      *this, [](int64_t dim) { return dim == 0; }, FactorKind::replicated);
}

ShardingRule ScatterOp::getShardingRule() {
  RankedTensorType x = getX().getType(), places = getPlaces().getType();
  ShardingRule rule;
  int64_t rows = rule.addFactor(x.getDimSize(0), FactorKind::replicated);
  int64_t columns = rule.addFactor(x.getDimSize(1));
  int64_t updates =
      rule.addFactor(places.getDimSize(0), FactorKind::replicated);
  rule.operands = {{{rows}, {columns}}, {{updates}}, {{updates}, {columns}}};
  rule.results = {{{rows}, {columns}}};
  return rule;
}

ShardingRule UpdateSliceOp::getShardingRule() {
  RankedTensorType x = getX().getType(), update = getUpdate().getType();
  ShardingRule rule;
  DimFactors all, written;
  for (int64_t dim = 0; dim < x.getRank(); ++dim)
    if (dim == static_cast<int64_t>(getDim())) {
      all.push_back(
          {rule.addFactor(x.getDimSize(dim), FactorKind::replicated)});
      written.push_back(
          {rule.addFactor(update.getDimSize(dim), FactorKind::replicated)});
    } else {
      all.push_back({rule.addFactor(x.getDimSize(dim))});
      written.push_back(all.back());
    }
  rule.operands = {all, written, {all.front()}};
  rule.results = {all};
  return rule;
}

//===----------------------------------------------------------------------===//
// Recurrent
//===----------------------------------------------------------------------===//

/// Whether all directions compute the same, but for their weights.
static bool areDirectionsAlike(RecurrentOp op) {
  ArrayRef<Attribute> functions = op.getFunctions().getValue();
  size_t count = RecurrentOp::getNumFunctions(op.getCell());
  for (size_t i = count; i < functions.size(); ++i)
    if (functions[i] != functions[i - count])
      return false;
  return llvm::all_equal(op.getReversed());
}

/// Every shard computes the same op. So directions pass through only where they
/// are alike.
ShardingRule RecurrentOp::getShardingRule() {
  RankedTensorType x = getX().getType(), weights = getWeights().getType();
  ShardingRule rule;
  int64_t batch = rule.addFactor(x.getDimSize(1));
  int64_t directions = rule.addFactor(
      getNumDirections(), areDirectionsAlike(*this) ? FactorKind::pass_through
                                                    : FactorKind::replicated);
  auto addWhole = [&](int64_t size) {
    return rule.addFactor(size, FactorKind::replicated);
  };
  int64_t hidden = addWhole(getHiddenSize());
  int64_t gates = addWhole(weights.getDimSize(1));
  int64_t steps = addWhole(x.getDimSize(0));
  rule.operands = {{{steps}, {batch}, {directions}, {gates}},
                   {{directions}, {gates}, {hidden}}};
  if (getLengths())
    rule.operands.push_back({{batch}});
  for (Value state : {getInitial(), getInitialCell()})
    if (state)
      rule.operands.push_back({{directions}, {batch}, {hidden}});
  if (getPeepholes())
    rule.operands.push_back({{directions}, {addWhole(3 * getHiddenSize())}});
  if (getHiddenBias())
    rule.operands.push_back({{directions}, {hidden}});
  int64_t rows = addWhole(getType().getDimSize(0));
  rule.results = {{{rows}, {directions}, {batch}, {hidden}}};
  return rule;
}

Operation *RecurrentOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                                   ArrayRef<int64_t> sizes, ValueRange operands,
                                   ArrayRef<Value>) {
  auto local = cast<RecurrentOp>(
      buildLocalLike(builder, getOperation(), rule, sizes, operands));
  int64_t directions = local.getNumDirections();
  local.setReversed(getReversed().take_front(directions));
  local.setFunctionsAttr(
      builder.getArrayAttr(getFunctions().getValue().take_front(
          directions * getNumFunctions(getCell()))));
  return local;
}

} // namespace partita::nn

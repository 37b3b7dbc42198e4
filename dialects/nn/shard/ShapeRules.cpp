//===- ShapeRules.cpp - Rules of ops that move elements -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

using namespace mlir;

namespace partita::nn {

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule;
  DimFactors from, to;
  for (int64_t size : getX().getType().getShape())
    from.push_back({rule.addFactor(size)});
  for (int64_t dim : getPermutation())
    to.push_back(from[dim]);
  rule.operands = {from};
  rule.results = {to};
  rule.can_pad = true;
  return rule;
}

ShardingRule BroadcastOp::getShardingRule() {
  ShardingRule rule = sameShapeRule(*this);
  DimFactors from;
  for (auto [size, dim] :
       llvm::zip_equal(getX().getType().getShape(), getDims()))
    from.push_back(size == getType().getDimSize(dim) ? rule.results[0][dim]
                                                     : SmallVector<int64_t>());
  rule.operands = {from};
  rule.can_pad = true;
  return rule;
}

//===----------------------------------------------------------------------===//
// Slice, reverse, pad, concat
//===----------------------------------------------------------------------===//

/// Whether all of a dimension is taken.
static bool takesWhole(SliceOp slice, int64_t dim) {
  int64_t size = slice.getX().getType().getDimSize(dim);
  return slice.getType().getDimSize(dim) == size;
}

/// Whether a slice takes one of several equal parts of a dimension.
static bool takesBlock(SliceOp op, int64_t dim) {
  const int64_t size = op.getX().getType().getDimSize(dim),
                taken = op.getType().getDimSize(dim);
  return op.getStrides()[dim] == 1 && taken > 0 && taken < size &&
         size % taken == 0 && op.getStarts()[dim] % taken == 0;
}

/// Whether a slice takes the same element of each group of a few neighbours.
static bool takesFromGroups(SliceOp op, int64_t dim) {
  const int64_t size = op.getX().getType().getDimSize(dim),
                stride = op.getStrides()[dim];
  return stride > 1 && size > 0 && size % stride == 0 &&
         op.getStarts()[dim] < stride &&
         op.getType().getDimSize(dim) == size / stride;
}

ShardingRule SliceOp::getShardingRule() {
  ShardingRule rule =
      movingRule(*this, [&](int64_t dim) { return takesWhole(*this, dim); });
  for (int64_t dim = 0; dim < getType().getRank(); ++dim) {
    if (takesFromGroups(*this, dim)) {
      const int64_t inGroup = rule.operands[0][dim][0],
                    group = rule.results[0][dim][0];
      rule.factors[inGroup] = {static_cast<int64_t>(getStrides()[dim]),
                               FactorKind::replicated};
      rule.factors[group].kind = FactorKind::pass_through;
      rule.operands[0][dim] = {group, inGroup};
    }
    if (!takesBlock(*this, dim))
      continue;
    const int64_t blocks = rule.operands[0][dim][0],
                  block = rule.results[0][dim][0];
    rule.factors[blocks] = {getX().getType().getDimSize(dim) /
                                getType().getDimSize(dim),
                            FactorKind::blocked};
    rule.factors[block].kind = FactorKind::pass_through;
    rule.operands[0][dim] = {blocks, block};
  }
  return rule;
}

Operation *SliceOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                               ArrayRef<int64_t> sizes, ValueRange operands,
                               ArrayRef<Value>) {
  auto local = cast<SliceOp>(
      buildLocalLike(builder, getOperation(), rule, sizes, operands));
  // What is cut is taken whole or from groups, or is one of several equal
  // blocks.
  SmallVector<int64_t> starts(getStarts()), limits(getLimits());
  for (auto [dim, start, limit] : llvm::enumerate(starts, limits)) {
    const int64_t taken = getType().getDimSize(dim),
                  own = local.getType().getDimSize(dim);
    if (own == taken)
      continue;
    if (takesFromGroups(*this, static_cast<int64_t>(dim))) {
      limit = own * getStrides()[dim];
      continue;
    }
    start = start / taken * own;
    limit = start + own;
  }
  local.setStarts(starts);
  local.setLimits(limits);
  return local;
}

ShardingRule ReverseOp::getShardingRule() {
  ShardingRule rule = sameShapeRule(*this, [&](int64_t dim) {
    return llvm::is_contained(getDims(), dim) ? FactorKind::permutation
                                              : FactorKind::pass_through;
  });
  rule.can_pad = true;
  return rule;
}

ShardingRule PadOp::getShardingRule() {
  return movingRule(*this, [&](int64_t dim) {
    return getLow()[dim] == 0 && getHigh()[dim] == 0;
  });
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule = sameShapeRule(*this, [&](int64_t dim) {
    return dim == static_cast<int64_t>(getDim()) ? FactorKind::blocked
                                                 : FactorKind::pass_through;
  });
  rule.can_pad = true;
  auto sizeOf = [&](Value operand) {
    return cast<RankedTensorType>(operand.getType()).getDimSize(getDim());
  };
  // Blocks of equal size may each be cut.
  const int64_t first = sizeOf(getOperands()[0]);
  if (first > 0 && llvm::all_of(getOperands(), [&](Value operand) {
        return sizeOf(operand) == first;
      })) {
    const int64_t blocks = rule.results[0][getDim()][0],
                  block = rule.addFactor(first);
    rule.factors[blocks].size = static_cast<int64_t>(getNumOperands());
    rule.results[0][getDim()] = {blocks, block};
    for (DimFactors &dims : rule.operands)
      dims[getDim()] = {block};
    return rule;
  }
  for (auto [dims, operand] : llvm::zip_equal(rule.operands, getOperands()))
    dims[getDim()] = {rule.addFactor(sizeOf(operand), FactorKind::blocked)};
  return rule;
}

//===----------------------------------------------------------------------===//
// What has no operands
//===----------------------------------------------------------------------===//

ShardingRule IotaOp::getShardingRule() {
  return sameShapeRule(*this, [&](int64_t dim) {
    return dim == static_cast<int64_t>(getDim()) ? FactorKind::replicated
                                                 : FactorKind::pass_through;
  });
}

ShardingRule AccumulatorOp::getShardingRule() {
  return pointwiseShardingRule(*this);
}

ShardingRule SumMicroBatchesOp::getShardingRule() {
  return pointwiseShardingRule(*this);
}

ShardingRule ParameterOp::getShardingRule() {
  return pointwiseShardingRule(*this);
}

ShardingRule ConstantOp::getShardingRule() {
  ShardingRule rule = sameShapeRule(*this, [&](int64_t) {
    return isa<SplatElementsAttr>(getValue()) ? FactorKind::pass_through
                                              : FactorKind::replicated;
  });
  rule.can_pad = true;
  return rule;
}

Operation *ConstantOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                                  ArrayRef<int64_t> sizes, ValueRange operands,
                                  ArrayRef<Value>) {
  auto local = cast<ConstantOp>(
      buildLocalLike(builder, getOperation(), rule, sizes, operands));
  if (auto splat = dyn_cast<SplatElementsAttr>(getValue()))
    local.setValueAttr(splat.resizeSplat(local.getType()));
  return local;
}

} // namespace partita::nn

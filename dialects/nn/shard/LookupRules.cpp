//===- LookupRules.cpp - Rules of ops that look elements up ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/EmptyTensors.h"
#include "dialects/nn/grad/Term.h"

using namespace mlir;

namespace partita::nn {

/// Shards look up what lies in their part of `x`, and the others' elements are
/// neutral. Types that are only stored cannot be joined.
static int64_t addLookup(ShardingRule &rule, RankedTensorType x, int64_t dim) {
  Type element = x.getElementType();
  const bool canJoin =
      isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element) ||
      (isa<IntegerType>(element) &&
       (element.isInteger(1) || element.getIntOrFloatBitWidth() >= 8));
  if (!canJoin)
    return rule.addFactor(x.getDimSize(dim), FactorKind::replicated);
  const int64_t factor =
      rule.addFactor(x.getDimSize(dim), FactorKind::reduction,
                     element.isInteger(1) ? ReduceKind::max : ReduceKind::sum);
  rule.factors[factor].needs_begin = true;
  rule.can_pad = true;
  return factor;
}

namespace {
/// What a shard computes of an op that looks elements of its first operand up
/// along a dimension, by the indices in its second operand.
class LocalLookup {
public:
  LocalLookup(OpBuilder &builder, Operation *op, const ShardingRule &rule,
              ArrayRef<int64_t> sizes, ValueRange operands,
              ArrayRef<Value> begins)
      : b(builder), op(op), loc(op->getLoc()), rule(rule), sizes(sizes),
        operands(operands), begins(begins) {}

  /// `dim` is the dimension of `x`. Each index gives the elements of the result
  /// with the same coordinates from dimension `indexDim` on.
  Operation *build(int64_t dim, int64_t indexDim) {
    const int64_t factor = rule.operands[0][dim][0];
    if (!begins[factor])
      return buildLocalLike(b, op, rule, sizes, operands);
    const int64_t part =
        cast<RankedTensorType>(operands[0].getType()).getDimSize(dim);
    Value place = getPlace(rule.factors[factor].size, begins[factor]);
    Value isInside =
        AndOp::create(b, loc, compare(ComparePredicate::ge, place, fill(0)),
                      compare(ComparePredicate::lt, place, fill(part)));
    Value inside = SelectOp::create(b, loc, isInside, place, fill(0));
    Value found =
        buildLocalLike(b, op, rule, sizes, {operands[0], inside})->getResult(0);
    auto type = cast<RankedTensorType>(found.getType());
    SmallVector<int64_t> dims;
    for (int64_t i = 0; i < indices.getRank(); ++i)
      dims.push_back(indexDim + i);
    Value keep =
        BroadcastOp::create(b, loc, type.clone(b.getI1Type()), isInside, dims);
    Value neutral = ConstantOp::create(
        b, loc, getNeutral(rule.factors[factor].combine, type));
    return SelectOp::create(b, loc, keep, found, neutral);
  }

private:
  /// The places within the shard's part. Indices count from the end if they are
  /// negative, and are clamped to the whole.
  Value getPlace(int64_t size, Value begin) {
    ImplicitLocOpBuilder builder(loc, b);
    const grad::Term index =
        grad::readIndices(grad::Term(builder, operands[1]), size);
    indices = index.type();
    begin = BroadcastOp::create(b, loc, indices, begin, ArrayRef<int64_t>());
    return SubOp::create(b, loc, index.get(), begin);
  }

  Value fill(int64_t number) {
    return ConstantOp::create(
        b, loc, DenseElementsAttr::get(indices, b.getI64IntegerAttr(number)));
  }

  Value compare(ComparePredicate predicate, Value x, Value y) {
    return CompareOp::create(b, loc, indices.clone(b.getI1Type()), predicate, x,
                             y);
  }

  /// For sums of floats -0: then -0 stays -0.
  static DenseElementsAttr getNeutral(ReduceKind kind, RankedTensorType type) {
    auto element = dyn_cast<FloatType>(type.getElementType());
    if (!element || kind != ReduceKind::sum)
      return getNeutralTensor(kind, type);
    return DenseElementsAttr::get(
        type, APFloat::getZero(element.getFloatSemantics(), /*Negative=*/true));
  }

  OpBuilder &b;
  Operation *op;
  const Location loc;
  const ShardingRule &rule;
  const ArrayRef<int64_t> sizes;
  const ValueRange operands;
  const ArrayRef<Value> begins;
  RankedTensorType indices; ///< of i64
};
} // namespace

ShardingRule GatherOp::getShardingRule() {
  int64_t along = getDim();
  ShardingRule rule;
  DimFactors from, indices;
  for (auto [dim, size] : llvm::enumerate(getX().getType().getShape()))
    from.push_back({static_cast<int64_t>(dim) == along
                        ? addLookup(rule, getX().getType(), along)
                        : rule.addFactor(size)});
  for (int64_t size : getIndices().getType().getShape())
    indices.push_back({rule.addFactor(size)});
  DimFactors to;
  llvm::append_range(to, ArrayRef(from).take_front(along));
  llvm::append_range(to, indices);
  llvm::append_range(to, ArrayRef(from).drop_front(along + 1));
  rule.operands = {from, indices};
  rule.results = {to};
  return rule;
}

Operation *GatherOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                                ArrayRef<int64_t> sizes, ValueRange operands,
                                ArrayRef<Value> begins) {
  return LocalLookup(builder, getOperation(), rule, sizes, operands, begins)
      .build(getDim(), getDim());
}

/// Where `indices` are fewer than `x` has elements, only the first are read.
ShardingRule GatherElementsOp::getShardingRule() {
  RankedTensorType x = getX().getType(), indices = getIndices().getType();
  int64_t along = getDim();
  ShardingRule rule;
  DimFactors from, to;
  for (int64_t dim = 0; dim < x.getRank(); ++dim) {
    int64_t size = indices.getDimSize(dim);
    if (dim == along) {
      from.push_back({addLookup(rule, x, dim)});
      to.push_back({rule.addFactor(size)});
    } else if (size == x.getDimSize(dim)) {
      from.push_back({rule.addFactor(size)});
      to.push_back(from.back());
    } else {
      from.push_back(
          {rule.addFactor(x.getDimSize(dim), FactorKind::permutation)});
      to.push_back({rule.addFactor(size, FactorKind::permutation)});
    }
  }
  rule.operands = {from, to};
  rule.results = {to};
  return rule;
}

Operation *GatherElementsOp::buildLocal(OpBuilder &builder,
                                        const ShardingRule &rule,
                                        ArrayRef<int64_t> sizes,
                                        ValueRange operands,
                                        ArrayRef<Value> begins) {
  return LocalLookup(builder, getOperation(), rule, sizes, operands, begins)
      .build(getDim(), 0);
}

} // namespace partita::nn

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
using partita::nn::grad::Term;

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

/// For sums of floats -0: then -0 stays -0.
static DenseElementsAttr getNeutral(ReduceKind kind, RankedTensorType type) {
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || kind != ReduceKind::sum)
    return getNeutralTensor(kind, type);
  return DenseElementsAttr::get(
      type, APFloat::getZero(element.getFloatSemantics(), /*Negative=*/true));
}

/// What a shard computes of an op that looks elements of its first operand up
/// along `dim`, by the indices in its second operand. Each index gives the
/// elements of the result with the same coordinates from dimension `indexDim`
/// on.
static Operation *buildLocalLookup(OpBuilder &builder, Operation *op,
                                   const ShardingRule &rule,
                                   ArrayRef<int64_t> sizes, ValueRange operands,
                                   ArrayRef<Value> begins, int64_t dim,
                                   int64_t indexDim) {
  const int64_t factor = rule.operands[0][dim][0];
  if (!begins[factor])
    return buildLocalLike(builder, op, rule, sizes, operands);
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  const Factor &whole = rule.factors[factor];
  const double part = Term(b, operands[0]).shape()[dim];
  const Term index = readIndices(Term(b, operands[1]), whole.size),
             begin = Term(b, begins[factor]).broadcast({}, index.shape()),
             place = index - begin;
  const Term isInside = place >= 0.0 && place < part,
             inside = select(isInside, place, 0.0);
  Operation *lookup =
      buildLocalLike(builder, op, rule, sizes, {operands[0], inside});
  const Term found(b, lookup->getResult(0));
  const Term isFound = isInside.broadcast(
      llvm::to_vector(llvm::seq(indexDim, indexDim + index.rank())),
      found.shape());
  const Term neutral(
      b, ConstantOp::create(b, getNeutral(whole.combine, found.type())));
  return select(isFound, found, neutral).get().getDefiningOp();
}

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
  return buildLocalLookup(builder, *this, rule, sizes, operands, begins,
                          getDim(), getDim());
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
  return buildLocalLookup(builder, *this, rule, sizes, operands, begins,
                          getDim(), 0);
}

} // namespace partita::nn

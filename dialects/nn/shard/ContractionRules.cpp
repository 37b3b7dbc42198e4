//===- ContractionRules.cpp - Rules of dot, convolution, attention --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/Term.h"

using namespace mlir;

namespace partita::nn {

ShardingRule DotOp::getShardingRule() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  ShardingRule rule;
  DimFactors lhsDims(lhs.getRank()), rhsDims(rhs.getRank()), resultDims;
  for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
    lhsDims[l] = rhsDims[r] = {rule.addFactor(lhs.getDimSize(l))};
    resultDims.push_back(lhsDims[l]);
  }
  auto addFreeDims = [&](RankedTensorType type, DimFactors &dims,
                         ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    for (int64_t dim : getFreeDims(type.getRank(), batch, contract)) {
      dims[dim] = {rule.addFactor(type.getDimSize(dim))};
      resultDims.push_back(dims[dim]);
    }
  };
  addFreeDims(lhs, lhsDims, getLhsBatch(), getLhsContract());
  addFreeDims(rhs, rhsDims, getRhsBatch(), getRhsContract());
  for (auto [l, r] : llvm::zip_equal(getLhsContract(), getRhsContract()))
    lhsDims[l] =
        rhsDims[r] = {rule.addFactor(lhs.getDimSize(l), FactorKind::reduction)};
  rule.operands = {lhsDims, rhsDims};
  rule.results = {resultDims};
  rule.can_pad = true;
  return rule;
}

namespace {
/// What a convolution and its derivatives have in common. Groups are the outer
/// factor of the input channels and of the output channels. A spatial dimension
/// passes through where each window is one pixel.
struct ConvFactors {
  ShardingRule rule;
  DimFactors x, weights, y;

  /// How the factors of samples, of input and output channels of a group and of
  /// pixels are used by an op, and those of positions that windows combine.
  struct Kinds {
    FactorKind samples = FactorKind::pass_through,
               in = FactorKind::pass_through, out = FactorKind::pass_through,
               pixels = FactorKind::pass_through,
               window = FactorKind::replicated, x = FactorKind::permutation,
               y = FactorKind::permutation;
  };

  template <typename Op>
  ConvFactors(Op op, RankedTensorType xType, RankedTensorType weightType,
              RankedTensorType yType, const Kinds &kinds)
      : x(xType.getRank()), weights(xType.getRank()), y(xType.getRank()) {
    x[0] = y[0] = {rule.addFactor(xType.getDimSize(0), kinds.samples)};
    SmallVector<int64_t> in, out;
    const int64_t groups = op.getGroups(), channels = op.getChannelDim();
    if (groups > 1)
      in = out = {rule.addFactor(groups)};
    out.push_back(rule.addFactor(weightType.getDimSize(0) / groups, kinds.out));
    const int64_t depth = rule.addFactor(weightType.getDimSize(1), kinds.in);
    in.push_back(depth);
    x[channels] = in;
    weights[0] = y[channels] = out;
    weights[1] = {depth};
    for (auto [i, stride] : llvm::enumerate(op.getStrides())) {
      const int64_t dim = op.getFirstSpatialDim() + i,
                    window = weightType.getDimSize(2 + i);
      weights[2 + i] = {rule.addFactor(window, kinds.window)};
      if (window == 1 && stride == 1 && op.getPadsLow()[i] == 0 &&
          op.getPadsHigh()[i] == 0) {
        x[dim] = y[dim] = {rule.addFactor(xType.getDimSize(dim), kinds.pixels)};
        continue;
      }
      x[dim] = {rule.addFactor(xType.getDimSize(dim), kinds.x)};
      y[dim] = {rule.addFactor(yType.getDimSize(dim), kinds.y)};
    }
    rule.can_pad = true;
  }

  ShardingRule finish(const DimFactors &first, const DimFactors &second,
                      const DimFactors &result) {
    rule.operands = {first, second};
    rule.results = {result};
    return rule;
  }
};
} // namespace

ShardingRule ConvOp::getShardingRule() {
  ConvFactors factors(*this, getX().getType(), getWeights().getType(),
                      getType(), {.in = FactorKind::reduction});
  return factors.finish(factors.x, factors.weights, factors.y);
}

ShardingRule ConvDxOp::getShardingRule() {
  ConvFactors factors(*this, getType(), getWeights().getType(),
                      getDy().getType(), {.out = FactorKind::reduction});
  return factors.finish(factors.y, factors.weights, factors.x);
}

ShardingRule ConvDwOp::getShardingRule() {
  ConvFactors factors(*this, getX().getType(), getType(), getDy().getType(),
                      {.samples = FactorKind::reduction,
                       .pixels = FactorKind::reduction,
                       .window = FactorKind::permutation,
                       .x = FactorKind::replicated,
                       .y = FactorKind::replicated});
  return factors.finish(factors.x, factors.y, factors.weights);
}

ShardingRule AttentionOp::getShardingRule() {
  RankedTensorType q = getQ().getType(), v = getV().getType();
  ShardingRule rule;
  int64_t batch = rule.addFactor(q.getDimSize(0));
  int64_t heads = rule.addFactor(q.getDimSize(1));
  int64_t queries = rule.addFactor(q.getDimSize(2));
  int64_t width = rule.addFactor(v.getDimSize(3));
  int64_t keys = rule.addFactor(v.getDimSize(2), FactorKind::replicated);
  int64_t depth = rule.addFactor(q.getDimSize(3), FactorKind::replicated);
  rule.operands = {{{batch}, {heads}, {queries}, {depth}},
                   {{batch}, {heads}, {keys}, {depth}},
                   {{batch}, {heads}, {keys}, {width}}};
  for (Value mask : {getMaskMul(), getMaskAdd()}) {
    if (!mask)
      continue;
    DimFactors dims = {{batch}, {heads}, {queries}, {keys}};
    auto shape = cast<RankedTensorType>(mask.getType()).getShape();
    for (auto [factors, size] : llvm::zip_equal(dims, shape))
      if (size == 1)
        factors.clear();
    rule.operands.push_back(dims);
  }
  rule.results = {{{batch}, {heads}, {queries}, {width}}};
  rule.can_pad = true;
  return rule;
}

/// The experts that weights are of. A shard computes the rows of its part, and
/// has 0 for the others.
static int64_t addExperts(ShardingRule &rule, int64_t count) {
  const int64_t factor = rule.addFactor(count, FactorKind::reduction);
  rule.factors[factor].needs_begin = true;
  return factor;
}

/// A copy of the op on local operands. `indices`: the operand that chooses
/// experts; they are counted from the first one of the shard.
static Operation *buildLocalExperts(OpBuilder &b, Operation *op,
                                    const ShardingRule &rule,
                                    ArrayRef<int64_t> sizes,
                                    ValueRange operands, ArrayRef<Value> begins,
                                    int64_t factor, size_t indices) {
  SmallVector<Value> local(operands);
  const Factor &experts = rule.factors[factor];
  if (Value begin = begins[factor]) {
    ImplicitLocOpBuilder located(op->getLoc(), b);
    grad::Term index(located, local[indices]), first(located, begin);
    // Behind the last expert a part that was rounded up has room, but no
    // expert.
    if (experts.size % sizes[factor] != 0)
      index = select(index < static_cast<double>(experts.size), index, -1.0);
    local[indices] = index - first.broadcast({}, index.shape());
  }
  return buildLocalLike(b, op, rule, sizes, local);
}

ShardingRule ExpertDotOp::getShardingRule() {
  RankedTensorType x = getX().getType(), weights = getWeights().getType();
  ShardingRule rule;
  DimFactors rows;
  for (int64_t size : x.getShape().drop_back())
    rows.push_back({rule.addFactor(size)});
  const int64_t depth =
      rule.addFactor(weights.getDimSize(2), FactorKind::reduction);
  const int64_t expert = addExperts(rule, weights.getDimSize(0));
  const int64_t column = rule.addFactor(weights.getDimSize(1));
  DimFactors left = rows, result = rows;
  left.push_back({depth});
  result.push_back({column});
  rule.operands = {left, {{expert}, {column}, {depth}}, rows};
  rule.results = {result};
  rule.can_pad = true;
  return rule;
}

Operation *ExpertDotOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                                   ArrayRef<int64_t> sizes, ValueRange operands,
                                   ArrayRef<Value> begins) {
  return buildLocalExperts(builder, getOperation(), rule, sizes, operands,
                           begins, rule.operands[1][0][0], 2);
}

ShardingRule ExpertOuterOp::getShardingRule() {
  RankedTensorType dy = getDy().getType(), result = getType();
  ShardingRule rule;
  DimFactors rows;
  for (int64_t size : dy.getShape().drop_back())
    rows.push_back({rule.addFactor(size, FactorKind::reduction)});
  const int64_t depth = rule.addFactor(result.getDimSize(2)),
                expert = rule.addFactor(result.getDimSize(0)),
                column = rule.addFactor(result.getDimSize(1));
  rule.factors[expert].needs_begin = true;
  DimFactors left = rows, right = rows;
  left.push_back({column});
  right.push_back({depth});
  rule.operands = {left, right, rows};
  rule.results = {{{expert}, {column}, {depth}}};
  rule.can_pad = true;
  return rule;
}

Operation *ExpertOuterOp::buildLocal(OpBuilder &builder,
                                     const ShardingRule &rule,
                                     ArrayRef<int64_t> sizes,
                                     ValueRange operands,
                                     ArrayRef<Value> begins) {
  return buildLocalExperts(builder, getOperation(), rule, sizes, operands,
                           begins, rule.results[0][0][0], 2);
}

Operation *PackedDotOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                                   ArrayRef<int64_t> sizes, ValueRange operands,
                                   ArrayRef<Value> begins) {
  if (!getExperts())
    return buildLocalLike(builder, getOperation(), rule, sizes, operands);
  return buildLocalExperts(builder, getOperation(), rule, sizes, operands,
                           begins, rule.operands[1][0][0], operands.size() - 1);
}

ShardingRule PackedDotOp::getShardingRule() {
  RankedTensorType x = getX().getType(), weights = getWeights().getType();
  ShardingRule rule;
  DimFactors left, result;
  for (int64_t size : x.getShape().drop_back()) {
    left.push_back({rule.addFactor(size)});
    result.push_back(left.back());
  }
  // A part of x has whole blocks.
  const DimFactors rows = left;
  const int64_t rank = weights.getRank(), depth = x.getShape().back(),
                blocks = weights.getDimSize(rank - 2);
  const bool isWhole = blocks * getBlockSize() == depth;
  const int64_t block = rule.addFactor(
      blocks, isWhole ? FactorKind::reduction : FactorKind::replicated);
  const int64_t inner =
      rule.addFactor(isWhole ? getBlockSize() : depth, FactorKind::replicated);
  const int64_t row = rule.addFactor(weights.getDimSize(rank - 3));
  const int64_t byte =
      rule.addFactor(weights.getDimSize(rank - 1), FactorKind::replicated);
  if (isWhole)
    left.push_back({block, inner});
  else
    left.push_back({inner});
  result.push_back({row});
  DimFactors bytes = {{row}, {block}, {byte}}, scales = {{row}, {block}};
  if (getExperts()) {
    const int64_t expert = addExperts(rule, weights.getDimSize(0));
    bytes.insert(bytes.begin(), {expert});
    scales.insert(scales.begin(), {expert});
  }
  rule.operands = {left, bytes, scales};
  if (getZeros())
    rule.operands.push_back(scales);
  if (getExperts())
    rule.operands.push_back(rows);
  rule.results = {result};
  rule.can_pad = true;
  return rule;
}

} // namespace partita::nn

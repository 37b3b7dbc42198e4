//===- ContractionRules.cpp - Rules of dot, convolution, attention --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

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
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(batch, dim) &&
          !llvm::is_contained(contract, dim)) {
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

/// Groups are the outer factor of the input channels and of the output
/// channels. A spatial dimension passes through where each window is one pixel.
ShardingRule ConvOp::getShardingRule() {
  RankedTensorType x = getX().getType(), weights = getWeights().getType();
  RankedTensorType result = getType();
  ShardingRule rule;
  DimFactors xDims(x.getRank()), weightDims(x.getRank()),
      resultDims(x.getRank());
  xDims[0] = resultDims[0] = {rule.addFactor(x.getDimSize(0))};
  SmallVector<int64_t> in, out;
  int64_t groups = getGroups();
  if (groups > 1)
    in = out = {rule.addFactor(groups)};
  out.push_back(rule.addFactor(weights.getDimSize(0) / groups));
  int64_t depth = rule.addFactor(weights.getDimSize(1), FactorKind::reduction);
  in.push_back(depth);
  xDims[getChannelDim()] = in;
  weightDims[0] = resultDims[getChannelDim()] = out;
  weightDims[1] = {depth};
  for (auto [i, stride] : llvm::enumerate(getStrides())) {
    int64_t dim = getFirstSpatialDim() + i, window = weights.getDimSize(2 + i);
    weightDims[2 + i] = {rule.addFactor(window, FactorKind::replicated)};
    if (window == 1 && stride == 1 && getPadsLow()[i] == 0 &&
        getPadsHigh()[i] == 0) {
      xDims[dim] = resultDims[dim] = {rule.addFactor(x.getDimSize(dim))};
      continue;
    }
    xDims[dim] = {rule.addFactor(x.getDimSize(dim), FactorKind::permutation)};
    resultDims[dim] = {
        rule.addFactor(result.getDimSize(dim), FactorKind::permutation)};
  }
  rule.operands = {xDims, weightDims};
  rule.results = {resultDims};
  rule.can_pad = true;
  return rule;
}

Operation *ConvOp::buildLocal(OpBuilder &builder, const ShardingRule &rule,
                              ArrayRef<int64_t> sizes, ValueRange operands,
                              ArrayRef<Value>) {
  auto local = cast<ConvOp>(
      buildLocalLike(builder, getOperation(), rule, sizes, operands));
  if (getGroups() > 1)
    local.setGroups(sizes[rule.operands[0][getChannelDim()].front()]);
  return local;
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

} // namespace partita::nn

//===- ShardingRule.cpp - Along what an op can be sharded -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/shard/ShardingRule.h"

using namespace mlir;

namespace partita::nn {

int64_t ShardingRule::addFactor(int64_t size, FactorKind kind,
                                ReduceKind combine) {
  factors.push_back({size, kind, combine});
  return static_cast<int64_t>(factors.size()) - 1;
}

RankedTensorType getLocalType(RankedTensorType type, const DimFactors &dims,
                              ArrayRef<int64_t> shards) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, factors] : llvm::zip_equal(shape, dims))
    for (int64_t factor : factors)
      size /= shards[factor];
  return type.clone(shape);
}

Operation *buildLocalLike(OpBuilder &builder, Operation *op,
                          const ShardingRule &rule, ArrayRef<int64_t> shards,
                          ValueRange operands) {
  Operation *local = builder.clone(*op);
  local->setOperands(operands);
  for (auto [result, dims] : llvm::zip_equal(local->getResults(), rule.results))
    result.setType(
        getLocalType(cast<RankedTensorType>(result.getType()), dims, shards));
  return local;
}

ShardingRule pointwiseShardingRule(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  ShardingRule rule;
  DimFactors dims;
  for (int64_t size : result.getShape())
    dims.push_back({rule.addFactor(size)});
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.push_back(dims);
  return rule;
}

} // namespace partita::nn

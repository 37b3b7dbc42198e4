//===- ShardingRule.h - Along what an op can be sharded ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_SHARD_SHARDINGRULE_H
#define PARTITA_DIALECTS_NN_SHARD_SHARDINGRULE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/raw_ostream.h"

#include "dialects/nn/NNEnums.h.inc"

namespace partita::nn {

/// How an op can be sharded along a factor.
enum class FactorKind {
  /// Each shard computes its part of the results from its parts of the
  /// operands.
  pass_through,
  /// Results do not have the factor: shards give partial results, which
  /// `combine` joins.
  reduction,
  /// Every shard reads and computes all of it.
  replicated,
  /// Elements move along it (slice, pad, reverse, windows with a halo). It is
  /// treated as `replicated` today.
  permutation,
  /// One of several factors that follow one another in a dimension (concat). It
  /// is treated as `replicated` today.
  blocked
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::pass_through;
  ReduceKind combine = ReduceKind::sum; ///< of a reduction
  int64_t least_part = 1;               ///< elements that each part must have
  /// Whether a shard's op depends on where its part begins. Then the factor is
  /// cut in one block.
  bool needs_begin = false;

  /// Whether the factor may be cut, so that each shard has a part.
  bool canShard() const {
    return kind == FactorKind::pass_through || kind == FactorKind::reduction;
  }
};

/// For each dimension of a tensor its factors, outermost first. The size of the
/// dimension is the product of the factors' sizes.
using DimFactors = llvm::SmallVector<llvm::SmallVector<int64_t>>;

/// The factors of an op's operands and results, numbered from 0. A factor is in
/// at most one dimension of a tensor. A dimension of size 1 may have none.
///
///   matmul [4,8] x [8,6]: factors i = 4, j = 6 (both pass_through), k = 8
///     (reduction); operands {{{i}, {k}}, {{k}, {j}}}, results {{{i}, {j}}}
///   reshape [8,12] -> [96]: factors i = 8, j = 12; operands {{{i}, {j}}},
///     results {{{i, j}}}
struct ShardingRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<DimFactors> operands;
  llvm::SmallVector<DimFactors> results;
  /// Whether factors may be padded so that they can be cut into equal parts. If
  /// it passes through, shards compute anything beyond the end; it is thrown
  /// away, and nothing else depends on it. If it is a reduction, operands must
  /// hold the neutral element of `combine` beyond the end.
  bool can_pad = false;

  /// Appends a factor; returns its number.
  int64_t addFactor(int64_t size, FactorKind kind = FactorKind::pass_through,
                    ReduceKind combine = ReduceKind::sum);
};

/// Prints a rule in Shardy's notation: `([i,k],[k,j])->([i,j]) reduction={k}`.
/// Factors are i, j, k, ..., z, z_1, z_2, .... A dimension without factors is
/// printed as 1. Other kinds are `reduction(max)`, `replicated`, `permutation`
/// and `blocked`.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const ShardingRule &rule);

/// The type of a shard's part of a tensor. `sizes[f]` is the size of its part
/// of factor f.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type,
                                    const DimFactors &dims,
                                    llvm::ArrayRef<int64_t> sizes);

/// Builds a copy of the op on local operands. Its results have their local
/// types, and its attributes are the same.
mlir::Operation *buildLocalLike(mlir::OpBuilder &builder, mlir::Operation *op,
                                const ShardingRule &rule,
                                llvm::ArrayRef<int64_t> sizes,
                                mlir::ValueRange operands);

/// The rule of an op whose result element i depends on the elements i of its
/// operands.
ShardingRule pointwiseShardingRule(mlir::Operation *op);

/// The rule of an op whose operands and results all have the shape of its first
/// result. It has a factor for each dimension, of the kind that `kindOf` gives.
ShardingRule sameShapeRule(
    mlir::Operation *op, llvm::function_ref<FactorKind(int64_t dim)> kindOf =
                             [](int64_t) { return FactorKind::pass_through; });

/// The rule of an op whose first operand and result have the same rank.
/// Dimensions that it does not change pass through. In the other dimensions the
/// operand has a factor of kind `other`, and the result has another one.
/// Further operands have no factors.
ShardingRule movingRule(mlir::Operation *op,
                        llvm::function_ref<bool(int64_t dim)> leavesAlone,
                        FactorKind other = FactorKind::permutation);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_SHARD_SHARDINGRULE_H

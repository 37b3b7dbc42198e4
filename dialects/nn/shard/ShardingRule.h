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

/// What shards may do along a factor.
enum class FactorKind {
  /// Each shard computes its part of the results from its parts of the
  /// operands.
  pass_through,
  /// Results have no such factor: shards give partial results, which `combine`
  /// joins.
  reduction,
  /// Every shard needs (and gives) all of it.
  replicated,
  /// Elements move along it (slice, pad, reverse, windows with a halo): today
  /// as `replicated`.
  permutation,
  /// One of several factors of a dimension that lie one after another (concat):
  /// today as `replicated`.
  blocked
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::pass_through;
  ReduceKind combine = ReduceKind::sum; ///< of a reduction

  /// Whether shards may have a part of it each.
  bool canCut() const {
    return kind == FactorKind::pass_through || kind == FactorKind::reduction;
  }
};

/// For each dimension of a tensor the factors that make it up, outermost first.
/// The size of the dimension is the product of theirs.
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
  /// Whether factors that pass through, alone in their dimensions, may be cut
  /// into parts that are together longer: what shards compute beyond the end is
  /// thrown away, and nothing else depends on it.
  bool can_pad = false;

  /// Appends a factor; returns its number.
  int64_t addFactor(int64_t size, FactorKind kind = FactorKind::pass_through,
                    ReduceKind combine = ReduceKind::sum);
};

/// As Shardy writes rules: `([i,k],[k,j])->([i,j]) reduction={k}`. Factors are
/// i, j, k, ..., z, z_1, z_2, ...; a dimension without factors is 1. Other
/// kinds are `reduction(max)`, `replicated`, `permutation` and `blocked`.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const ShardingRule &rule);

/// The type of the part of a tensor that a shard has: `shards[f]` says into how
/// many equal parts factor f is cut; where that does not divide (`can_pad`),
/// parts are rounded up.
mlir::RankedTensorType getLocalType(mlir::RankedTensorType type,
                                    const DimFactors &dims,
                                    llvm::ArrayRef<int64_t> shards);

/// A copy of the op on local operands: its results have their local types, its
/// attributes are the same.
mlir::Operation *buildLocalLike(mlir::OpBuilder &builder, mlir::Operation *op,
                                const ShardingRule &rule,
                                llvm::ArrayRef<int64_t> shards,
                                mlir::ValueRange operands);

/// The rule of an op whose element i of the result depends on elements i of the
/// operands. Beyond the end of a dimension anything is computed, but integers:
/// a division by 0 there would end the program.
ShardingRule pointwiseShardingRule(mlir::Operation *op);

/// The rule of an op whose operands and results all have the shape of its first
/// result: a factor for each dimension, of the kind that `kindOf` gives.
ShardingRule sameShapeRule(
    mlir::Operation *op, llvm::function_ref<FactorKind(int64_t dim)> kindOf =
                             [](int64_t) { return FactorKind::pass_through; });

/// The rule of an op whose first operand and result have the same rank:
/// dimensions that it leaves alone pass through. In the others the operand has
/// a factor of kind `other`, and the result another one. Further operands have
/// no factors.
ShardingRule movingRule(mlir::Operation *op,
                        llvm::function_ref<bool(int64_t dim)> leavesAlone,
                        FactorKind other = FactorKind::permutation);

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_SHARD_SHARDINGRULE_H

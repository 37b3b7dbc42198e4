//===- NNToLinalg.h - A cluster as linalg on tensors ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's function takes the cluster's operands, and for each result a
// tensor to write into. Its body is a list of *stages*: one linalg.generic for
// each value that is stored in memory.
//
//   softmax        max (rows), exp (rows x columns), sum (rows), result
//   layer norm     sum (rows), mean (rows), sum of squares (rows), ..., result
//   pointwise      result
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_NNTOLINALG_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_NNTOLINALG_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::codegen {

/// Which values, besides the results, become stages.
enum class StageMode {
  fast,    ///< reductions, and expensive values that several stages read
  lean,    ///< reductions; everything else is computed where it is read
  nothing, ///< none: each value is computed where it is read, in loops
};

/// Replaces ops that are too large for one stage (softmax, attention) by
/// simpler ones.
void decomposeOps(mlir::Block &body);

/// Replaces ops whose elements depend on those before them (scan, top_k,
/// scatter) by reductions, which many threads compute at once.
void decomposeOrderedOps(mlir::Block &body);

/// The values to store in memory, in an order in which they can be computed.
llvm::SmallVector<mlir::Value> chooseStages(mlir::Block &body, StageMode mode);

/// Appends the function of a cluster to the block of `b`. `ordered`: also of
/// ops whose elements depend on those before them.
mlir::FailureOr<mlir::func::FuncOp>
buildKernel(mlir::OpBuilder &b, nn::ClusterOp cluster, llvm::StringRef name,
            StageMode mode, bool ordered = false);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_NNTOLINALG_H

//===- KernelGrouping.h - Small kernels that start as one -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a launch takes as long as a small kernel, kernels that do not wait for
// each other start together.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELGROUPING_H
#define PARTITA_COMPILER_CODEGEN_KERNELGROUPING_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::codegen {

/// A kernel in the IR, and how a device starts it: by the extent of its
/// parallel loop, or by a grid of blocks.
struct BuiltKernel {
  mlir::func::FuncOp function;
  int64_t extent = 1, grain = 1;
  llvm::SmallVector<int64_t> launch;  ///< blocks, threads; empty: no grid
  llvm::SmallVector<int64_t> inPlace; ///< pairs (operand, result)
};

class KernelGrouping {
public:
  virtual ~KernelGrouping() = default;

  /// Whether a cluster's kernel is so small that it should start together with
  /// others that do not wait for it, nor it for them.
  virtual bool isSmall(nn::ClusterOp cluster) const = 0;

  /// Whether these kernels can start as one. Operand i of all kernels, one
  /// kernel after another, is operand inputs[i] of that one.
  virtual bool canGroup(llvm::ArrayRef<mlir::func::FuncOp> kernels,
                        llvm::ArrayRef<int64_t> inputs) const = 0;

  /// Appends one kernel that computes what all of these do, to the block of
  /// `b`. Its results are theirs, one kernel after another.
  virtual BuiltKernel group(mlir::OpBuilder &b,
                            llvm::ArrayRef<mlir::func::FuncOp> kernels,
                            llvm::ArrayRef<int64_t> inputs) const = 0;
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELGROUPING_H

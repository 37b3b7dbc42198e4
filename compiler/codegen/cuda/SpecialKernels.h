//===- SpecialKernels.h - Kernels that are no loops of stages ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What GPUs compute better by threads that know the op than by the stages of a
// grid (grid/GridSchedule.h): a cluster that is such an op, and nothing else,
// has a kernel of its kind.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_SPECIALKERNELS_H
#define PARTITA_COMPILER_CODEGEN_CUDA_SPECIALKERNELS_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen::cuda {

/// A kind of kernel. What is asked of a cluster or a function holds if it is of
/// this kind.
struct SpecialKernel {
  /// Whether the body of a cluster, or of a function, is of this kind.
  bool (*is)(mlir::Block &body);
  /// Blocks of the grid.
  int64_t (*countBlocks)(mlir::func::FuncOp kernel);
  /// Pairs (operand, result) that may overlap.
  llvm::SmallVector<int64_t> (*getInPlace)(mlir::func::FuncOp kernel);
  /// Threads of a block.
  int64_t threads;
  /// Fails, with a diagnostic, if there is no such kernel for the cluster.
  /// Null: there always is.
  mlir::LogicalResult (*check)(nn::ClusterOp cluster);
  /// Appends what each thread does to `target`, under the kernel's name.
  void (*emit)(mlir::func::FuncOp kernel, mlir::ModuleOp target);
};

/// The kind of a cluster, or of a kernel's function; null: stages of a grid.
const SpecialKernel *findSpecialKernel(nn::ClusterOp cluster);
const SpecialKernel *findSpecialKernel(mlir::func::FuncOp kernel);

/// Appends the function of a cluster of this kind to the block of `b`.
mlir::FailureOr<mlir::func::FuncOp>
buildSpecialKernel(mlir::OpBuilder &b, nn::ClusterOp cluster,
                   const SpecialKernel &kind);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_SPECIALKERNELS_H

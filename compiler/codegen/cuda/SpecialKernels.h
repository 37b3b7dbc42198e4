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

/// Threads of a block, of all kinds.
inline constexpr int64_t kSpecialThreads = 256;

/// A kind of kernel. What is asked of a cluster or a function holds if it is of
/// this kind.
struct SpecialKernel {
  /// Whether the body of a cluster, or of a function, is of this kind.
  bool (*is)(mlir::Block &body);
  /// Blocks of the grid.
  int64_t (*countBlocks)(mlir::func::FuncOp kernel);
  /// Pairs (operand, result) that may overlap.
  llvm::SmallVector<int64_t> (*getInPlace)(mlir::func::FuncOp kernel);
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

//===--- The kinds ------------------------------------------------------===//

// Of each kind, `get...` is the op that is all that a body computes, if it has
// such a kernel, or null. `countBlocks` counts those of the kernel's grid, and
// `emit...` appends what each thread does to `target`, under the kernel's name.

/// Whether a block scans a row.
bool isLongScan(nn::ScanOp scan);
nn::ScanOp getLongScan(mlir::Block &body);
int64_t countBlocks(nn::ScanOp scan);
void emitScan(mlir::func::FuncOp kernel, nn::ScanOp scan,
              mlir::ModuleOp target);

/// What a pass takes besides a row, in elements.
inline constexpr int64_t kPassElements = 4096;
/// Whether a block takes a pass over a row for each result.
bool isSelected(nn::TopKOp topK);
nn::TopKOp getSelection(mlir::Block &body);
int64_t countBlocks(nn::TopKOp topK);
void emitSelect(mlir::func::FuncOp kernel, nn::TopKOp topK,
                mlir::ModuleOp target);

/// Whether blocks make whole rows: of a sum, in elements of 32 or 64 bits,
/// where rows are long and there are many.
bool isRowScatter(nn::ScatterOp scatter);
/// Of such a scatter upon a tensor or a constant number.
nn::ScatterOp getRowScatter(mlir::Block &body);
int64_t countBlocks(nn::ScatterOp scatter);
/// The pair (operand, result) that may overlap, if there is one: a block reads
/// what its rows are before it writes them.
llvm::SmallVector<int64_t> getInPlace(nn::ScatterOp scatter);
void emitScatter(mlir::func::FuncOp kernel, nn::ScatterOp scatter,
                 mlir::ModuleOp target);

/// The layer of a body that has nothing else but constants, or null.
nn::RecurrentOp getRecurrentLayer(mlir::Block &body);
int64_t countBlocks(nn::RecurrentOp layer);
/// Fails, with a diagnostic, if a layer's states do not fit shared memory, or
/// are not of f32.
mlir::LogicalResult checkRecurrentKernel(nn::ClusterOp cluster);
void emitRecurrent(mlir::func::FuncOp kernel, nn::RecurrentOp layer,
                   mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_SPECIALKERNELS_H

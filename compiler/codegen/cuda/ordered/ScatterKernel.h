//===- ScatterKernel.h - Sums of rows at given places, on GPUs --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of an embedding: few updates of a table with many rows. A block
// makes a row of the result. Its threads look together for the first update of
// this row, add it, look for the next one, and so on. So updates are added in
// their order, and a row without any takes one look at the places.
//
// Other scatters reduce all updates for each element (DecomposeOrdered.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCATTERKERNEL_H
#define PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCATTERKERNEL_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen::cuda {

/// Threads of a block.
inline constexpr int64_t kScatterThreads = 256;

/// Whether a block makes a row, if the scatter has a kernel of its own: of a
/// sum, in elements of 32 or 64 bits, where rows are long and there are many.
bool isRowScatter(nn::ScatterOp scatter);

/// The op that is all that a cluster computes, or a kernel's function, if it is
/// such a scatter, upon a tensor or a constant number; or null.
nn::ScatterOp getRowScatter(nn::ClusterOp cluster);
nn::ScatterOp getRowScatter(mlir::func::FuncOp kernel);

/// Blocks of the kernel's grid: the rows.
int64_t countBlocks(nn::ScatterOp scatter);

/// Appends what each thread does to `target`, under the kernel's name.
mlir::LogicalResult emitScatter(mlir::func::FuncOp kernel,
                                nn::ScatterOp scatter, mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCATTERKERNEL_H

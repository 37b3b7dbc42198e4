//===- ScatterKernel.h - Sums of rows at given places, on GPUs --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of an embedding: few updates of a table with many rows. A block
// makes some rows of the result. Its threads look at the places of as many
// updates at once, and vote: a bit says that an update is for one of these
// rows. All threads then add these updates, each its own columns. So updates
// are added in their order, and the places are read once a block, not once a
// row.
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

/// Whether blocks make whole rows: the scatter has a kernel of its own: of a
/// sum, in elements of 32 or 64 bits, where rows are long and there are many.
bool isRowScatter(nn::ScatterOp scatter);

/// The op that is all that a body computes, if it is such a scatter, upon a
/// tensor or a constant number; or null.
nn::ScatterOp getRowScatter(mlir::Block &body);

/// Rows that a block makes: fewer where there would be too few blocks to fill a
/// GPU.
int64_t countRowsOfBlock(nn::ScatterOp scatter);

/// Blocks of the kernel's grid.
int64_t countBlocks(nn::ScatterOp scatter);

/// The pair (operand, result) that may overlap, if there is one: a block reads
/// what its rows are before it writes them.
llvm::SmallVector<int64_t> getInPlace(nn::ScatterOp scatter);

/// Appends what each thread does to `target`, under the kernel's name.
void emitScatter(mlir::func::FuncOp kernel, nn::ScatterOp scatter,
                 mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCATTERKERNEL_H

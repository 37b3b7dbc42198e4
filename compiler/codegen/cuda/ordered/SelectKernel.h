//===- SelectKernel.h - The few largest elements, on GPUs -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block chooses the first elements of a row one after another: its threads
// look for the first one of those that come behind the last one chosen. That is
// a pass over the row for each result.
//
// Where many are chosen, or rows are short, each element is ranked instead
// (DecomposeOrdered.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SELECTKERNEL_H
#define PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SELECTKERNEL_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen::cuda {

/// Threads of a block.
inline constexpr int64_t kSelectThreads = 256;
/// What a pass takes besides a row, in elements.
inline constexpr int64_t kPassElements = 4096;

/// Whether a block takes a pass for each result.
bool isSelected(nn::TopKOp topK);

/// The op that is all that a body computes, if its results are selected; or
/// null.
nn::TopKOp getSelection(mlir::Block &body);

/// Blocks of the kernel's grid: the rows.
int64_t countBlocks(nn::TopKOp topK);

/// Appends what each thread does to `target`, under the kernel's name.
void emitSelect(mlir::func::FuncOp kernel, nn::TopKOp topK,
                mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SELECTKERNEL_H

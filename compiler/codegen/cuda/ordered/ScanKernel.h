//===- ScanKernel.h - Long scans on GPUs ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block scans a row, 1024 elements at a time. Each thread scans four that
// follow one another. What is before them is joined from what earlier threads
// of the warp have, by shuffles; what earlier warps have, in shared memory; and
// what is before the 1024, which is carried along.
//
// Short rows are reduced for each of their elements (DecomposeOrdered.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCANKERNEL_H
#define PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCANKERNEL_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::codegen::cuda {

/// Threads of a block.
inline constexpr int64_t kScanThreads = 256;

/// Whether a block scans a row.
bool isLongScan(nn::ScanOp scan);

/// The long scan that is all that a body computes, or null.
nn::ScanOp getLongScan(mlir::Block &body);

/// Blocks of the kernel's grid: the rows.
int64_t countBlocks(nn::ScanOp scan);

/// Appends what each thread does to `target`, under the kernel's name.
void emitScan(mlir::func::FuncOp kernel, nn::ScanOp scan,
              mlir::ModuleOp target);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_ORDERED_SCANKERNEL_H

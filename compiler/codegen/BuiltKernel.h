//===- BuiltKernel.h - A kernel, and how it starts --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_BUILTKERNEL_H
#define PARTITA_COMPILER_CODEGEN_BUILTKERNEL_H

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

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_BUILTKERNEL_H

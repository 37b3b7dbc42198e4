//===- KernelWork.h - What a kernel of a GPU has to do ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Estimates for the cost model, before there is a kernel:
//
//   sum of [1000000, 8] to [8]     8000000 operations by 2048 threads
//   top 10 of each row [4, 1000]   4 x 10 passes of 5096 comparisons by 1024
//                                  threads
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_KERNELWORK_H
#define PARTITA_COMPILER_CODEGEN_CUDA_KERNELWORK_H

#include "mlir/IR/Operation.h"

namespace partita::codegen::cuda {

/// The operations of an op as a kernel does them: more than a core needs, where
/// elements depend on each other.
double countOperations(mlir::Operation *op);

/// The threads of the kernel of these ops, about.
double countThreads(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_KERNELWORK_H

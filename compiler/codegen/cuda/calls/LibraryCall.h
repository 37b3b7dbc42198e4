//===- LibraryCall.h - Clusters that libraries of GPUs compute --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CudaBackend answers questions about calls with these functions; see
// codegen::Backend. What cuBLASLt and cuDNN compute is said in
// runtime/device/cuda/rules.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_CALLS_LIBRARYCALL_H
#define PARTITA_COMPILER_CODEGEN_CUDA_CALLS_LIBRARYCALL_H

#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/ArrayRef.h"

namespace partita::codegen::cuda {

/// Whether a call may have the op as its root: a product, a convolution or a
/// pool.
bool isCallRoot(mlir::Operation *op);

/// The call that computes all of the ops, given in topological order, or null.
plan::CallAttr matchLibraryCall(llvm::ArrayRef<mlir::Operation *> ops,
                                llvm::ArrayRef<mlir::Value> inputs,
                                llvm::ArrayRef<mlir::Value> results);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_CALLS_LIBRARYCALL_H

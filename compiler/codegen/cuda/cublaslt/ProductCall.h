//===- ProductCall.h - Products that cuBLASLt computes ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CudaBackend answers questions about calls with these functions; see
// codegen::Backend. What the library computes is said in
// runtime/device/cuda/cublaslt/rules.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_CUBLASLT_PRODUCTCALL_H
#define PARTITA_COMPILER_CODEGEN_CUDA_CUBLASLT_PRODUCTCALL_H

#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/ArrayRef.h"

namespace partita::codegen::cuda {

/// Whether a call may have the op as its root: a product, or a convolution of
/// single pixels.
bool isProduct(mlir::Operation *op);

/// The call that computes all of the ops, given in topological order, or null.
plan::CallAttr matchProduct(llvm::ArrayRef<mlir::Operation *> ops,
                            llvm::ArrayRef<mlir::Value> inputs,
                            llvm::ArrayRef<mlir::Value> results);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_CUBLASLT_PRODUCTCALL_H

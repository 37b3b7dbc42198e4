//===- Passes.h - Passes that compile kernels for GPUs ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   partita-opt x.mlir --lower-clusters --lower-cuda-kernels-to-threads
//   partita-opt x.mlir --lower-clusters
//   --lower-cuda-kernels-to-llvm=architecture=sm_90
//
// where the module of x.mlir has the attribute `plan.target = "cuda:sm_90"`.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_PASSES_H
#define PARTITA_COMPILER_CODEGEN_CUDA_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace partita::codegen::cuda {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/codegen/cuda/Passes.h.inc"

/// Adds the passes that lower kernels from linalg on tensors to the LLVM
/// dialect. `pm` runs on the module of kernels.
void addCudaPasses(mlir::OpPassManager &pm, llvm::StringRef architecture);

/// Registers `--lower-cuda-kernels-to-threads` and
/// `--lower-cuda-kernels-to-llvm`, which lower the kernels of a model.
void registerCudaPipelines();

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_PASSES_H

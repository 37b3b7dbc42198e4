//===- CompilePtx.h - From kernels to PTX -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_COMPILEPTX_H
#define PARTITA_COMPILER_CODEGEN_CUDA_COMPILEPTX_H

#include "compiler/codegen/cuda/CudaTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <vector>

namespace partita::codegen::cuda {

/// The dialects that kernels are written in, and lowered through.
void registerCudaDialects(mlir::DialectRegistry &registry);

/// LLVM's IR of kernels, as PTX is written from it.
struct LlvmKernels {
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
};

/// Lowers a module of kernels in linalg, and has LLVM improve it. Fails with a
/// diagnostic.
mlir::FailureOr<LlvmKernels> lowerToLlvm(mlir::ModuleOp kernels, const Gpu &gpu,
                                         bool optimize,
                                         llvm::LLVMContext &context);

/// Compiles a module of kernels in linalg. The result is text that ends with a
/// NUL. It declares nothing that another module would have to define. Fails
/// with a diagnostic.
mlir::FailureOr<std::vector<char>> compilePtx(mlir::ModuleOp kernels,
                                              const Gpu &gpu, bool optimize);

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_COMPILEPTX_H

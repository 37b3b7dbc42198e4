//===- Passes.h - Passes that compile kernels -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These passes lower a module of kernels, as `--lower-clusters` makes it,
// towards machine code. `partita-opt` can stop between any two of them:
//
//   partita-opt x.mlir --lower-clusters --lower-kernels-to-loops
//   partita-opt x.mlir --lower-clusters --lower-kernels-to-llvm=level=x86-64-v4
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_PASSES_H
#define PARTITA_COMPILER_CODEGEN_CPU_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace partita::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/codegen/cpu/Passes.h.inc"

/// Adds the passes that lower kernels from linalg on tensors to the LLVM
/// dialect, with entry points. The result is the same for all processors. `pm`
/// runs on the module of kernels.
void addKernelPasses(mlir::OpPassManager &pm);

/// Registers `--lower-kernels-to-loops` and `--lower-kernels-to-llvm`, which
/// lower the kernels of a model.
void registerKernelPipelines();

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_PASSES_H

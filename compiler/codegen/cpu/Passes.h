//===- Passes.h - Passes that compile kernels -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The way of a module of kernels, as `--lower-clusters` makes it, to machine
// code. `partita-opt` stops between any two of its passes:
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

/// From linalg on tensors to the LLVM dialect, with entry points; the same for
/// all processors. `pm` is one of the module of kernels.
void addKernelPasses(mlir::OpPassManager &pm);

/// Registers `--lower-kernels-to-loops` and `--lower-kernels-to-llvm`, on the
/// kernels of a model.
void registerKernelPipelines();

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CPU_PASSES_H

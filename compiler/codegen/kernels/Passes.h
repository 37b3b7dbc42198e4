//===- Passes.h - Passes on kernels of all backends -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_PASSES_H
#define PARTITA_COMPILER_CODEGEN_KERNELS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace partita::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/codegen/kernels/Passes.h.inc"

/// Adds the passes that make the arithmetic of kernels what LLVM has
/// instructions for: functions are expanded, and floats of 16 bits are computed
/// in f32.
void addArithmeticPasses(mlir::OpPassManager &pm);

/// Adds the conversions to the LLVM dialect. `hasLibm`: functions that LLVM has
/// no intrinsic for become calls of the C library, for which vectors are taken
/// apart.
void addConversionPasses(mlir::OpPassManager &pm, bool hasLibm);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_PASSES_H

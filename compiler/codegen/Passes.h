//===- Passes.h - Passes that lower clusters --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_PASSES_H
#define PARTITA_COMPILER_CODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace partita::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/codegen/Passes.h.inc"

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_PASSES_H

//===- Passes.h - Passes that show what analyses find -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_PASSES_H
#define PARTITA_COMPILER_ANALYSIS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::analysis {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/analysis/Passes.h.inc"

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_PASSES_H

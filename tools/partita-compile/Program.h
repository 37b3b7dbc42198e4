//===- Program.h - partita-compile from its command line on -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_COMPILE_PROGRAM_H
#define PARTITA_TOOLS_PARTITA_COMPILE_PROGRAM_H

#include "compiler/codegen/Codegen.h"

#include "mlir/IR/MLIRContext.h"

namespace partita::tools {

/// Does what the command line says and returns the exit status. `context` must
/// have the compiler's dialects registered. It serves any number of calls, one
/// after another. `objects`, if not null, keeps compiled kernels for later
/// calls.
int runCompiler(int argc, char **argv, mlir::MLIRContext &context,
                codegen::ObjectCache *objects = nullptr);

} // namespace partita::tools

#endif // PARTITA_TOOLS_PARTITA_COMPILE_PROGRAM_H

//===- PrintModule.h - The IR for people ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_PRINTMODULE_H
#define PARTITA_COMPILER_DRIVER_PRINTMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {

/// Prints a module. Values are called what the nodes are called that compute
/// them: `%conv1.Conv = nn.conv ...`. Locations in the module are lost.
void printModule(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_PRINTMODULE_H

//===- NotANumber.h - What calls may make of NaN ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_NOTANUMBER_H
#define PARTITA_COMPILER_CODEGEN_NOTANUMBER_H

#include "mlir/IR/Operation.h"

namespace partita::codegen {

/// On a module: NaN that is computed must stay NaN. A step that has written
/// states cannot be computed again by other code.
inline constexpr llvm::StringLiteral kKeepsNanAttr = "plan.keeps_nan";

/// Whether the module of an op says so.
inline bool keepsNan(mlir::Operation *op) {
  while (op && !op->hasAttr(kKeepsNanAttr))
    op = op->getParentOp();
  return op != nullptr;
}

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_NOTANUMBER_H

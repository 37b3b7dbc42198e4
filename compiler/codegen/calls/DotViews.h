//===- DotViews.h - Products as rows and columns ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_DOTVIEWS_H
#define PARTITA_COMPILER_CODEGEN_CALLS_DOTVIEWS_H

#include "compiler/codegen/calls/CallMatcher.h"

namespace partita::codegen {

/// Makes the `nn.dot` a call of kind `dot`, [B.., M, K] * [B.., K, N]: a rule's
/// `match`. Rows or columns lie side by side in each operand, and rows in the
/// result. Returns false if strides cannot express that.
bool matchDotViews(CallMatcher &call, mlir::Operation *root);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_DOTVIEWS_H

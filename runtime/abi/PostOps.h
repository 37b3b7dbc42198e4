//===- PostOps.h - Kinds of post-ops of library calls -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_POSTOPS_H
#define PARTITA_RUNTIME_ABI_POSTOPS_H

#include "runtime/abi/plan_generated.h"

namespace partita::abi {

/// Whether the post-op has a second operand, `PostOp.view`.
constexpr bool isBinary(PostOpKind kind) {
  return kind >= PostOpKind::add && kind <= PostOpKind::div;
}

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_POSTOPS_H

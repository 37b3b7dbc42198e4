//===- AttentionViews.h - Attention as a call -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_ATTENTIONVIEWS_H
#define PARTITA_COMPILER_CODEGEN_CALLS_ATTENTIONVIEWS_H

#include "compiler/codegen/calls/CallMatcher.h"

namespace partita::codegen {

/// Makes an `nn.attention` a call of kind `attention`, with masks of the shape
/// of the scores. Returns false if it is none: nothing follows the result.
bool matchAttentionViews(CallMatcher &call, mlir::Operation *root);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_ATTENTIONVIEWS_H

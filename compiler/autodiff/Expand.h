//===- Expand.h - Ops that have a derivative in parts -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_EXPAND_H
#define PARTITA_COMPILER_AUTODIFF_EXPAND_H

#include "dialects/nn/NNDialect.h"

namespace partita::autodiff {

/// Puts products and a softmax in the place of the op.
void expand(nn::AttentionOp op);

/// Puts the steps of the layer in the place of the op.
void expand(nn::RecurrentOp op);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_EXPAND_H

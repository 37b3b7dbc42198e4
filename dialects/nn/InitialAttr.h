//===- InitialAttr.h - Initial values of weights ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_INITIALATTR_H
#define PARTITA_DIALECTS_NN_INITIALATTR_H

#include "llvm/ADT/StringRef.h"

namespace partita::nn {

/// On a weight: how PyTorch's layer draws it at random, as text:
/// "constant,value=0", "uniform,low=-0.5,high=0.5" or "normal,mean=0,std=1".
inline constexpr llvm::StringLiteral kDefaultInitialAttr = "nn.default_initial";
/// On a weight: [fan-in, fan-out], array<i64>.
inline constexpr llvm::StringLiteral kFansAttr = "nn.fans";
/// On a state: how it is drawn when training begins, as text.
inline constexpr llvm::StringLiteral kInitialAttr = "nn.initial";

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_INITIALATTR_H

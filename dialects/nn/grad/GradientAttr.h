//===- GradientAttr.h - Which sums are gradients ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_GRAD_GRADIENTATTR_H
#define PARTITA_DIALECTS_NN_GRAD_GRADIENTATTR_H

#include "llvm/ADT/StringRef.h"

namespace partita::nn {

/// On a sum over micro-batches: the trained weight of whose gradient it is all
/// or, if several nodes read the weight, a part.
inline constexpr llvm::StringLiteral kGradientAttr = "nn.gradient_of";

/// On a weight that is trained.
inline constexpr llvm::StringLiteral kTrainedAttr = "nn.trained";

} // namespace partita::nn

#endif // PARTITA_DIALECTS_NN_GRAD_GRADIENTATTR_H

//===- LossSpec.h - What a person says of a loss ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   cross_entropy:logits                       with labels in the input
//   "target" cross_entropy:logits:labels,ignore_index=0 mse:y,reduction=sum
//   output:loss                                the model computes it
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_LOSSSPEC_H
#define PARTITA_COMPILER_AUTODIFF_LOSSSPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace partita::autodiff {

/// What a loss compares an output with.
enum class Target {
  none,   ///< nothing
  labels, ///< the numbers of classes, i64, without the dimension of classes
  values  ///< a tensor of the output's shape and type
};

struct LossKind {
  llvm::StringLiteral name;
  Target target;
};

/// cross_entropy, nll, mse, l1, huber, bce, bce_logits, output, sum.
llvm::ArrayRef<LossKind> getLossKinds();

struct LossSpec {
  const LossKind *kind = nullptr;
  /// The rest, as it was given: OUTPUT or OUTPUT:INPUT. Names may hold colons.
  std::string names;
  bool mean = true;            ///< or the sum
  std::optional<int64_t> axis; ///< of the classes
  int64_t ignoreIndex = -100;  ///< labels that do not count
  double labelSmoothing = 0;   ///< in [0, 1]
  double delta = 1;            ///< of the Huber loss
};

/// Parses a loss. The error says what is wrong with which part, and what could
/// stand there.
llvm::Expected<LossSpec> parseLoss(llvm::StringRef text);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_LOSSSPEC_H

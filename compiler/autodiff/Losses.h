//===- Losses.h - Losses as formulas ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_LOSSES_H
#define PARTITA_COMPILER_AUTODIFF_LOSSES_H

#include "compiler/autodiff/LossSpec.h"
#include "dialects/nn/grad/Term.h"

namespace partita::autodiff {

/// A loss: the sum, divided by the count if there is one. Both are scalars.
struct Loss {
  nn::grad::Term sum, count;
};

/// Of the labels that a loss does not ignore: how many there are, and of how
/// many the score is the largest, or one of the five largest. Scalars of the
/// scores' type. Of equal scores the first class has the larger one; a score
/// that is NaN predicts nothing.
struct LabelCounts {
  nn::grad::Term all, right, rightOfFive;
};

/// The loss as PyTorch's losses of the same names define it. `y` is
/// the model's output, of floats. `target` is null, or labels [y's shape
/// without dimension `axis`], or values of y's shape and type. Narrow floats
/// are summed as f32.
Loss buildLoss(const LossSpec &spec, nn::grad::Term y, nn::grad::Term target,
               int64_t axis);

/// `scores` and `labels` as the loss has them, which compares with labels.
LabelCounts countLabels(const LossSpec &spec, nn::grad::Term scores,
                        nn::grad::Term labels, int64_t axis);

/// For each entry of the labels' first dimension the place of the first label
/// that is no class and does not stand for none, or the number of labels, and
/// that label: [rows, 2] of i64.
nn::grad::Term buildLabelCheck(const LossSpec &spec, nn::grad::Term labels,
                               int64_t classes);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_LOSSES_H

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

/// The loss as PyTorch's losses of the same names define it. `y` is
/// the model's output, of floats. `target` is null, or labels [y's shape
/// without dimension `axis`], or values of y's shape and type. Narrow floats
/// are summed as f32.
Loss buildLoss(const LossSpec &spec, nn::grad::Term y, nn::grad::Term target,
               int64_t axis);

/// For each entry of the labels' first dimension the place of the first label
/// that is no class and does not stand for none, or the number of labels, and
/// that label: [rows, 2] of i64.
nn::grad::Term buildLabelCheck(const LossSpec &spec, nn::grad::Term labels,
                               int64_t classes);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_LOSSES_H

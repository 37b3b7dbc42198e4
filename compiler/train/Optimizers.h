//===- Optimizers.h - The steps of PyTorch's optimizers ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_OPTIMIZERS_H
#define PARTITA_COMPILER_TRAIN_OPTIMIZERS_H

#include "compiler/train/OptimizerSpec.h"
#include "dialects/nn/grad/OptimizerSteps.h"

namespace partita::train {

/// A tensor of the parameter's shape that an optimizer keeps of it.
struct Moment {
  llvm::StringLiteral name; ///< PyTorch's
  double initial = 0;
};

/// What an optimizer keeps of each parameter, in the order of `step`.
llvm::SmallVector<Moment> getMoments(const OptimizerSpec &spec);

/// What changes from step to step: scalars of f64.
struct StepNumbers {
  nn::grad::Term learningRate, weightDecay;
  nn::grad::Term step; ///< 1, 2, ...
};

/// One step, by the formulas of PyTorch's optimizers of these names. All
/// tensors have one shape and type.
nn::grad::Stepped step(const OptimizerSpec &spec, const StepNumbers &numbers,
                       nn::grad::Term parameter, nn::grad::Term gradient,
                       llvm::ArrayRef<nn::grad::Term> moments);

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_OPTIMIZERS_H

//===- Optimizers.cpp - The numbers of an optimizer's step ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PyTorch's documentation defines them: torch.optim.SGD, Adam, AdamW, Adagrad.
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Optimizers.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::train {
namespace {

/// The gradient, with that of a penalty for large elements.
Term decayed(const StepNumbers &numbers, Term x, Term g) {
  return g + spread(numbers.weightDecay, x) * x;
}

Stepped stepSgd(const OptimizerSpec &spec, const StepNumbers &numbers, Term x,
                Term g, ArrayRef<Term> moments) {
  g = decayed(numbers, x, g);
  if (moments.empty())
    return {descend(x, numbers.learningRate, g), {}};
  Term share;
  // The first gradient is not damped.
  if (spec.dampening != 0)
    share = select(numbers.step == 1.0, 1.0,
                   numbers.step.splat(1 - spec.dampening));
  return nn::grad::step(
      Momentum{numbers.learningRate, share, spec.momentum, spec.nesterov}, x, g,
      moments[0]);
}

Stepped stepAdam(const OptimizerSpec &spec, const StepNumbers &numbers, Term x,
                 Term g, ArrayRef<Term> moments) {
  if (spec.kind == OptimizerKind::adam)
    g = decayed(numbers, x, g);
  else
    x = x * spread(1.0 - numbers.learningRate * numbers.weightDecay, x);
  Term rate = numbers.learningRate / rest(spec.beta1, numbers.step),
       correction = sqrt(rest(spec.beta2, numbers.step));
  return nn::grad::step(
      Adam{rate, correction, spec.beta1, spec.beta2, spec.eps}, x, g,
      moments[0], moments[1]);
}

Stepped stepAdagrad(const OptimizerSpec &spec, const StepNumbers &numbers,
                    Term x, Term g, ArrayRef<Term> moments) {
  g = decayed(numbers, x, g);
  Term rate = fallingRate(numbers.learningRate, spec.learningRateDecay,
                          numbers.step - 1.0);
  return nn::grad::step(Adagrad{rate, spec.eps}, x, g, moments[0]);
}

} // namespace

SmallVector<Moment> getMoments(const OptimizerSpec &spec) {
  switch (spec.kind) {
  case OptimizerKind::sgd:
    if (spec.momentum == 0)
      return {};
    return {{"momentum_buffer"}};
  case OptimizerKind::adam:
  case OptimizerKind::adamw:
    return {{"exp_avg"}, {"exp_avg_sq"}};
  case OptimizerKind::adagrad:
    return {{"sum", spec.initialAccumulator}};
  }
  llvm_unreachable("every optimizer is listed");
}

Stepped step(const OptimizerSpec &spec, const StepNumbers &numbers, Term x,
             Term g, ArrayRef<Term> moments) {
  switch (spec.kind) {
  case OptimizerKind::sgd:
    return stepSgd(spec, numbers, x, g, moments);
  case OptimizerKind::adam:
  case OptimizerKind::adamw:
    return stepAdam(spec, numbers, x, g, moments);
  case OptimizerKind::adagrad:
    return stepAdagrad(spec, numbers, x, g, moments);
  }
  llvm_unreachable("every optimizer is listed");
}

} // namespace partita::train

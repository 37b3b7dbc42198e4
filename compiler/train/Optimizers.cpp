//===- Optimizers.cpp - Steps of optimizers as formulas -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PyTorch's documentation defines them: torch.optim.SGD, Adam, AdamW, Adagrad.
// Numbers that hold for a step are computed in f64, as PyTorch's are; powers of
// a decay that is nearly 1 need that.
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Optimizers.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::train {
namespace {

/// A number of the step in all elements of a tensor like `like`.
Term spread(Term number, Term like) {
  return number.cast(like.element()).broadcast({}, like.shape());
}

/// The gradient, with that of a penalty for large elements.
Term decayed(const StepNumbers &numbers, Term x, Term g) {
  return g + spread(numbers.weightDecay, x) * x;
}

Stepped stepSgd(const OptimizerSpec &spec, const StepNumbers &numbers, Term x,
                Term g, ArrayRef<Term> moments) {
  g = decayed(numbers, x, g);
  Stepped result;
  if (!moments.empty()) {
    Term velocity = moments[0] * spec.momentum + g * (1 - spec.dampening);
    // The first gradient is not damped.
    if (spec.dampening != 0)
      velocity = select(spread(numbers.step, x) == 1.0, g, velocity);
    result.moments = {velocity};
    g = spec.nesterov ? g + velocity * spec.momentum : velocity;
  }
  result.parameter = x - spread(numbers.learningRate, x) * g;
  return result;
}

/// 1 - decay^step: an average that begins with 0 is too small by that.
Term rest(double decay, Term step) {
  return 1.0 - pow(step.splat(decay), step);
}

Stepped stepAdam(const OptimizerSpec &spec, const StepNumbers &numbers, Term x,
                 Term g, ArrayRef<Term> moments) {
  if (spec.kind == OptimizerKind::adam)
    g = decayed(numbers, x, g);
  else
    x = x * spread(1.0 - numbers.learningRate * numbers.weightDecay, x);
  Term mean = moments[0] * spec.beta1 + g * (1 - spec.beta1),
       square = moments[1] * spec.beta2 + g * g * (1 - spec.beta2);
  Term rate = numbers.learningRate / rest(spec.beta1, numbers.step),
       correction = sqrt(rest(spec.beta2, numbers.step));
  Term size = sqrt(square) / spread(correction, x) + spec.eps;
  return {x - spread(rate, x) * (mean / size), {mean, square}};
}

Stepped stepAdagrad(const OptimizerSpec &spec, const StepNumbers &numbers,
                    Term x, Term g, ArrayRef<Term> moments) {
  g = decayed(numbers, x, g);
  Term sum = moments[0] + g * g;
  Term rate = numbers.learningRate /
              ((numbers.step - 1.0) * spec.learningRateDecay + 1.0);
  return {x - spread(rate, x) * (g / (sqrt(sum) + spec.eps)), {sum}};
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

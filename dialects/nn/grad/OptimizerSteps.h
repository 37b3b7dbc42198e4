//===- OptimizerSteps.h - Steps of optimizers as formulas -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the optimizers of a training file and those of ONNX's domain
// ai.onnx.preview.training have in common. They differ in the numbers of a
// step: rates, shares and corrections, which are scalars of f64, because powers
// of a decay that is nearly 1 need that.
//
// All tensors of a step have one shape and type: the parameter `x`, its
// gradient `g`, and what the optimizer keeps of the parameter.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_GRAD_OPTIMIZERSTEPS_H
#define PARTITA_DIALECTS_NN_GRAD_OPTIMIZERSTEPS_H

#include "dialects/nn/grad/Term.h"

namespace partita::nn::grad {

/// The values after a step.
struct Stepped {
  Term parameter;
  llvm::SmallVector<Term> moments; ///< what the optimizer keeps
};

/// A number of the step in all elements of a tensor like `like`.
Term spread(Term number, Term like);

/// 1 - decay^count: an average that begins with 0 is too small by that.
Term rest(double decay, Term count);

/// x - rate * direction.
Term descend(Term x, Term rate, Term direction);

/// The velocity becomes decay * velocity + share * g, and x moves against it.
/// With `nesterov`, x moves as if the velocity were a step older.
struct Momentum {
  Term rate, share; ///< no share: 1
  double decay = 0;
  bool nesterov = false;
};
Stepped step(const Momentum &with, Term x, Term g, Term velocity);

/// Averages of g and of its square. x moves by rate * mean / (sqrt(square) /
/// correction + eps).
struct Adam {
  Term rate, correction; ///< no correction: 1
  double beta1 = 0, beta2 = 0, eps = 0;
};
Stepped step(const Adam &with, Term x, Term g, Term mean, Term square);

/// The sum of squares of all gradients. x moves by rate * g / (sqrt(sum) +
/// eps).
struct Adagrad {
  Term rate;
  double eps = 0;
};
Stepped step(const Adagrad &with, Term x, Term g, Term sum);

/// A rate that falls with the number of updates before: rate / (1 + decay *
/// count).
Term fallingRate(Term rate, double decay, Term count);

} // namespace partita::nn::grad

#endif // PARTITA_DIALECTS_NN_GRAD_OPTIMIZERSTEPS_H

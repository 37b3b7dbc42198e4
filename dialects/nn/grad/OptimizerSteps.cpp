//===- OptimizerSteps.cpp - Steps of optimizers as formulas ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/OptimizerSteps.h"

namespace partita::nn::grad {

Term spread(Term number, Term like) {
  return number.cast(like.element()).broadcast({}, like.shape());
}

Term rest(double decay, Term count) {
  return 1.0 - pow(count.splat(decay), count);
}

Term descend(Term x, Term rate, Term direction) {
  return x - spread(rate, x) * direction;
}

Stepped step(const Momentum &with, Term x, Term g, Term velocity) {
  Term added = with.share.get() ? g * spread(with.share, g) : g;
  velocity = velocity * with.decay + added;
  return {descend(x, with.rate,
                  with.nesterov ? g + velocity * with.decay : velocity),
          {velocity}};
}

Stepped step(const Adam &with, Term x, Term g, Term mean, Term square) {
  mean = mean * with.beta1 + g * (1 - with.beta1);
  square = square * with.beta2 + g * g * (1 - with.beta2);
  Term size = sqrt(square);
  if (with.correction.get())
    size = size / spread(with.correction, x);
  return {descend(x, with.rate, mean / (size + with.eps)), {mean, square}};
}

Stepped step(const Adagrad &with, Term x, Term g, Term sum) {
  sum = sum + g * g;
  return {descend(x, with.rate, g / (sqrt(sum) + with.eps)), {sum}};
}

Term fallingRate(Term rate, double decay, Term count) {
  return rate / (count * decay + 1.0);
}

} // namespace partita::nn::grad

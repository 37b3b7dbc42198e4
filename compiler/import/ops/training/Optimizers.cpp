//===- Optimizers.cpp - Steps of optimizers -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The domain ai.onnx.preview.training. A node updates any number of tensors:
// its operands are the learning rate, the number of updates so far, and then
// lists of as many tensors each (the tensors, their gradients, what the
// optimizer keeps of each). Its results are such lists, too.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

Value add(NodeImport &n, Value x, Value y) { return n.binary<nn::AddOp>(x, y); }
Value mul(NodeImport &n, Value x, Value y) { return n.binary<nn::MulOp>(x, y); }
Value scale(NodeImport &n, Value x, double factor) {
  return mul(n, x, n.splat(factor, x));
}

/// The operands of a node that updates tensors.
class Update {
public:
  /// `lists`: how many lists of tensors there are.
  Update(NodeImport &n, unsigned lists) : n(n), lists(lists) {}

  /// Fails with an error if the lists are not as long as each other, or if
  /// tensors that belong together differ in shape or type.
  LogicalResult check() {
    if (n.inputs.size() < 2 + lists || (n.inputs.size() - 2) % lists != 0)
      return n.error("it has " + Twine(n.inputs.size()) +
                     " inputs, and should have a learning rate, a count and " +
                     Twine(lists) + " lists of as many tensors each");
    for (unsigned i = 0; i < 2; ++i)
      if (n.typeOf(n.input(i)).getNumElements() != 1)
        return n.error("its " + Twine(i == 0 ? "learning rate" : "count") +
                       " has " + Twine(n.typeOf(n.input(i)).getNumElements()) +
                       " elements, and should have one");
    for (unsigned which = 0; which < count(); ++which)
      for (unsigned list = 1; list < lists; ++list)
        if (tensor(list, which).getType() != tensor(0, which).getType())
          return n.error("input " + Twine(2 + list * count() + which) +
                         " is not of the shape and type of the tensor that it "
                         "updates, input " +
                         Twine(2 + which));
    return success();
  }

  /// The number of tensors that are updated.
  unsigned count() const {
    return static_cast<unsigned>((n.inputs.size() - 2) / lists);
  }
  Value tensor(unsigned list, unsigned which) const {
    return n.input(2 + list * count() + which);
  }
  LogicalResult result(unsigned list, unsigned which, Value value) {
    return n.result(list * count() + which, value);
  }

  /// The learning rate and the count, as numbers of f64: powers of a decay that
  /// is nearly 1 need them.
  Value rate() { return number(0); }
  Value updates() { return number(1); }
  /// Such a number as a tensor of the type of `like`.
  Value spread(Value x, Value like) {
    return n.broadcastTo(n.cast(x, n.elementOf(like)), n.shapeOf(like));
  }

  /// The gradient, with the one of a penalty for large elements.
  Value gradient(unsigned which, double penalty) {
    Value g = tensor(1, which);
    return penalty == 0 ? g : add(n, scale(n, tensor(0, which), penalty), g);
  }

private:
  Value number(unsigned input) {
    return n.cast(n.reshape(n.input(input), {}), n.b.getF64Type());
  }

  NodeImport &n;
  const unsigned lists;
};

/// x - rate * direction.
Value descend(NodeImport &n, Value x, Value rate, Value direction) {
  return n.binary<nn::SubOp>(x, mul(n, rate, direction));
}

LogicalResult importAdagrad(NodeImport &n) {
  Update update(n, 3);
  if (failed(update.check()))
    return failure();
  const double decay = n.floatAttr("decay_factor", 0),
               epsilon = n.floatAttr("epsilon", 1e-6f),
               penalty = n.floatAttr("norm_coefficient", 0);
  Value growth = scale(n, update.updates(), decay);
  Value rate =
      n.binary<nn::DivOp>(update.rate(), add(n, growth, n.splat(1, growth)));
  for (unsigned i = 0; i < update.count(); ++i) {
    Value x = update.tensor(0, i), g = update.gradient(i, penalty);
    Value squares = add(n, update.tensor(2, i), mul(n, g, g));
    Value size = n.unary<nn::SqrtOp>(squares);
    size = add(n, size, n.splat(epsilon, size));
    Value step = n.binary<nn::DivOp>(mul(n, update.spread(rate, x), g), size);
    if (failed(update.result(0, i, n.binary<nn::SubOp>(x, step))) ||
        failed(update.result(1, i, squares)))
      return failure();
  }
  return success();
}

/// The learning rate, made larger by as much as the first averages, which begin
/// with 0, are too small.
Value adjustRate(NodeImport &n, Update &update, double alpha, double beta) {
  Value rate = update.rate(), t = update.updates();
  auto rest = [&](double decay) {
    Value one = n.splat(1, t);
    return n.binary<nn::SubOp>(one, n.binary<nn::PowOp>(n.splat(decay, t), t));
  };
  Value adjusted = n.binary<nn::DivOp>(
      mul(n, rate, n.unary<nn::SqrtOp>(rest(beta))), rest(alpha));
  Value isLater = n.compare(nn::ComparePredicate::gt, t, n.splat(0, t));
  return n.select(isLater, adjusted, rate);
}

LogicalResult importAdam(NodeImport &n) {
  Update update(n, 4);
  if (failed(update.check()))
    return failure();
  const double alpha = n.floatAttr("alpha", 0.9f),
               beta = n.floatAttr("beta", 0.999f),
               epsilon = n.floatAttr("epsilon", 1e-6f),
               penalty = n.floatAttr("norm_coefficient", 0),
               shrink = n.floatAttr("norm_coefficient_post", 0);
  Value rate = adjustRate(n, update, alpha, beta);
  for (unsigned i = 0; i < update.count(); ++i) {
    Value x = update.tensor(0, i), g = update.gradient(i, penalty);
    Value mean =
        add(n, scale(n, update.tensor(2, i), alpha), scale(n, g, 1 - alpha));
    Value squares = add(n, scale(n, update.tensor(3, i), beta),
                        scale(n, mul(n, g, g), 1 - beta));
    Value size = n.unary<nn::SqrtOp>(squares);
    size = add(n, size, n.splat(epsilon, size));
    Value y =
        descend(n, x, update.spread(rate, x), n.binary<nn::DivOp>(mean, size));
    if (shrink != 0)
      y = scale(n, y, 1 - shrink);
    if (failed(update.result(0, i, y)) || failed(update.result(1, i, mean)) ||
        failed(update.result(2, i, squares)))
      return failure();
  }
  return success();
}

LogicalResult importMomentum(NodeImport &n) {
  Update update(n, 3);
  if (failed(update.check()))
    return failure();
  const double alpha = n.floatAttr("alpha", 0), beta = n.floatAttr("beta", 0),
               penalty = n.floatAttr("norm_coefficient", 0);
  const std::string mode = n.stringAttr("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return n.error("the attribute mode is '" + mode +
                   "', neither 'standard' nor 'nesterov'");
  // The first gradient counts as a whole.
  Value t = update.updates();
  Value share = n.select(n.compare(nn::ComparePredicate::gt, t, n.splat(0, t)),
                         n.splat(beta, t), n.splat(1, t));
  for (unsigned i = 0; i < update.count(); ++i) {
    Value x = update.tensor(0, i), g = update.gradient(i, penalty);
    Value moment = add(n, scale(n, update.tensor(2, i), alpha),
                       mul(n, update.spread(share, x), g));
    Value direction =
        mode == "standard" ? moment : add(n, g, scale(n, moment, alpha));
    Value y = descend(n, x, update.spread(update.rate(), x), direction);
    if (failed(update.result(0, i, y)) || failed(update.result(1, i, moment)))
      return failure();
  }
  return success();
}

const OpRow optimizerOps[] = {
    {"Adagrad", 1, 1, importAdagrad},
    {"Adam", 1, 1, importAdam},
    {"Momentum", 1, 1, importMomentum},
};

} // namespace

ArrayRef<OpRow> getOptimizerOps() { return optimizerOps; }

} // namespace partita::import

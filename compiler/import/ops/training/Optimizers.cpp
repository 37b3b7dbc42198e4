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
#include "dialects/nn/grad/OptimizerSteps.h"

using namespace llvm;
using namespace mlir;
using namespace partita::nn::grad;

namespace partita::import {
namespace {

/// The operands of a node that updates tensors.
class Update {
public:
  /// `lists`: how many lists of tensors there are.
  Update(NodeImport &n, unsigned lists) : n(n), b(n.loc, n.b), lists(lists) {}

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

  /// The learning rate, and how many updates there were, as f64.
  Term rate() { return number(0); }
  Term updates() { return number(1); }

  /// A tensor of a list, as a term.
  Term term(unsigned list, unsigned which) {
    return Term(b, tensor(list, which));
  }
  /// The gradient, with the one of a penalty for large elements.
  Term gradient(unsigned which) {
    const double penalty = n.floatAttr("norm_coefficient", 0);
    Term g = term(1, which);
    return penalty == 0 ? g : g + term(0, which) * penalty;
  }

  LogicalResult setResults(unsigned which, const Stepped &stepped) {
    PARTITA_TRY(n.result(which, stepped.parameter.get()));
    for (auto [i, moment] : enumerate(stepped.moments))
      PARTITA_TRY(n.result(static_cast<unsigned>(i + 1) * count() + which,
                           moment.get()));
    return success();
  }

private:
  Value tensor(unsigned list, unsigned which) const {
    return n.input(2 + list * count() + which);
  }
  Term number(unsigned input) {
    return Term(b, n.reshape(n.input(input), {})).cast(b.getF64Type());
  }

  NodeImport &n;
  ImplicitLocOpBuilder b;
  const unsigned lists;
};

LogicalResult importAdagrad(NodeImport &n) {
  Update update(n, 3);
  PARTITA_TRY(update.check());
  const Adagrad with{fallingRate(update.rate(), n.floatAttr("decay_factor", 0),
                                 update.updates()),
                     n.floatAttr("epsilon", 1e-6f)};
  for (unsigned i = 0; i < update.count(); ++i)
    PARTITA_TRY(
        update.setResults(i, step(with, update.term(0, i), update.gradient(i),
                                  update.term(2, i))));
  return success();
}

LogicalResult importAdam(NodeImport &n) {
  Update update(n, 4);
  PARTITA_TRY(update.check());
  Adam with;
  with.beta1 = n.floatAttr("alpha", 0.9f);
  with.beta2 = n.floatAttr("beta", 0.999f);
  with.eps = n.floatAttr("epsilon", 1e-6f);
  // The rate makes up for averages that begin with 0, and eps is not made
  // larger by that. Before the first update there is nothing to make up for.
  Term t = update.updates(), rate = update.rate();
  with.rate = select(
      t > 0.0, rate * sqrt(rest(with.beta2, t)) / rest(with.beta1, t), rate);
  const double shrink = n.floatAttr("norm_coefficient_post", 0);
  for (unsigned i = 0; i < update.count(); ++i) {
    Stepped stepped = step(with, update.term(0, i), update.gradient(i),
                           update.term(2, i), update.term(3, i));
    if (shrink != 0)
      stepped.parameter = stepped.parameter * (1 - shrink);
    PARTITA_TRY(update.setResults(i, stepped));
  }
  return success();
}

LogicalResult importMomentum(NodeImport &n) {
  Update update(n, 3);
  PARTITA_TRY(update.check());
  const std::string mode = n.stringAttr("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return n.error("the attribute mode is '" + mode +
                   "', neither 'standard' nor 'nesterov'");
  Term t = update.updates();
  const Momentum with{
      update.rate(),
      // The first gradient counts as a whole.
      select(t > 0.0, t.splat(n.floatAttr("beta", 0)), t.splat(1)),
      n.floatAttr("alpha", 0), mode == "nesterov"};
  for (unsigned i = 0; i < update.count(); ++i)
    PARTITA_TRY(
        update.setResults(i, step(with, update.term(0, i), update.gradient(i),
                                  update.term(2, i))));
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

//===- ResolveGradients.cpp - Gradients that a model asks for -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Activity.h"
#include "compiler/autodiff/Adjoints.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "dialects/nn/grad/Term.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::autodiff {

#define GEN_PASS_DEF_RESOLVEGRADIENTSPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

llvm::DenseMap<Value, Value> findActive(nn::GradientOp gradient) {
  llvm::DenseMap<Value, Value> active;
  for (Value variable : gradient.getVariables())
    active[variable] = Value();
  spreadActive(*gradient->getBlock(), active);
  return active;
}

/// Takes apart what has a derivative only in parts. Returns whether there was
/// something.
bool expandBefore(nn::GradientOp gradient,
                  const llvm::DenseMap<Value, Value> &active) {
  bool found = false;
  for (Operation &op : llvm::make_early_inc_range(*gradient->getBlock())) {
    if (&op == gradient)
      break;
    // All ops that are expanded have one result.
    if (op.getNumResults() == 1 && active.contains(op.getResult(0)))
      found |= llvm::TypeSwitch<Operation *, bool>(&op)
                   .Case<nn::AttentionOp, nn::PackedDotOp, nn::RecurrentOp,
                         nn::UpdateSliceOp>([](auto whole) {
                     expand(whole);
                     return true;
                   })
                   .Default(false);
  }
  return found;
}

LogicalResult resolve(nn::GradientOp gradient) {
  llvm::DenseMap<Value, Value> active = findActive(gradient);
  if (expandBefore(gradient, active))
    active = findActive(gradient);
  ImplicitLocOpBuilder b(gradient.getLoc(), gradient);
  Adjoints adjoints(b, std::move(active));
  const Term y(b, gradient.getY());
  if (adjoints.isActive(y))
    adjoints.add(y, y.splat(1));
  if (Operation *op = adjoints.run(gradient))
    return emitError(op->getLoc())
           << op->getName().getStringRef()
           << " has no derivative, and a gradient of the model needs it ("
           << adjoints.getPath(op).nodes << nn::getNodeName(gradient)
           << "): replace the node in the model, or ask for another gradient";
  b.setLoc(gradient.getLoc());
  for (auto [variable, result] :
       llvm::zip_equal(gradient.getVariables(), gradient.getResults())) {
    if (result.use_empty())
      continue;
    Value part = adjoints.take(variable, "the gradient of a variable");
    result.replaceAllUsesWith(part ? part : Term(b, variable).splat(0).get());
  }
  gradient.erase();
  return success();
}

struct ResolveGradientsPass
    : impl::ResolveGradientsPassBase<ResolveGradientsPass> {
  void runOnOperation() override {
    func::FuncOp function = getModelFunction(getOperation());
    if (!function)
      return signalPassFailure();
    SmallVector<nn::GradientOp> gradients;
    function.walk([&](nn::GradientOp op) { gradients.push_back(op); });
    for (nn::GradientOp gradient : gradients)
      if (failed(resolve(gradient)))
        return signalPassFailure();
    function.walk([](nn::VariableOp variable) {
      variable.replaceAllUsesWith(variable.getX());
      variable.erase();
    });
    if (gradients.empty())
      return;
    // What only an operand that is none of these gets, and what nobody reads.
    // From the end, so that an op is seen after all of its readers.
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace partita::autodiff

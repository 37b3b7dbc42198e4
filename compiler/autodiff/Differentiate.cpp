//===- Differentiate.cpp - The gradient of each trained parameter ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode (Adjoints.h), from the loss on.
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Activity.h"
#include "compiler/autodiff/Adjoints.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "compiler/autodiff/Replicas.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/grad/Term.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::autodiff {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

class Differentiator {
public:
  Differentiator(ModuleOp module, func::FuncOp function, bool inputs, bool mark)
      : module(module), function(function),
        end(function.getBody().front().getTerminator()),
        b(UnknownLoc::get(function.getContext()), end),
        adjoints(b, findActive(module, function, inputs)), inputs(inputs) {
    if (mark)
      adjoints.markLocations();
  }

  LogicalResult run() {
    findTrained();
    Value loss = end->getOperand(0);
    const bool hasCount =
        function.getNumResults() > 1 && function.getResultAttr(1, kCountAttr);
    if (hasCount)
      count = end->getOperand(1);
    const unsigned next = hasCount ? 2 : 1;
    const bool isAlone = end->getNumOperands() == next ||
                         function.getResultAttr(next, nn::kCheckAttr) ||
                         function.getResultAttr(next, nn::kStateAttr);
    if (!isAlone || !isa<FloatType>(elementOf(loss)) ||
        nn::getTensorType(loss).getNumElements() != 1)
      return emitError(function.getLoc())
             << "a loss is one number, of floats; --nn-add-loss makes one";
    auto own = PARTITA_TRY(findOwn(function));
    if (own.contains(loss))
      return emitError(loss.getLoc())
             << "each replica has another loss: join them before (AllReduce of "
                "the domain ai.partita)";
    adjoints.setOwn(std::move(own));
    if (adjoints.isActive(loss))
      adjoints.add(loss, Term(b, loss).splat(1));
    if (Operation *op = adjoints.run(end))
      return refuse(op);
    return addResults(loss);
  }

private:
  static Type elementOf(Value value) {
    return nn::getTensorType(value).getElementType();
  }

  /// The values to which the loss is differentiated, in the module's order.
  void findTrained() {
    for (auto weight : module.getOps<nn::WeightOp>())
      if (weight->hasAttr(kTrainedAttr))
        weights[weight.getSymNameAttr()] = {weight, {}};
    function.walk([&](nn::ParameterOp parameter) {
      auto found = weights.find(parameter.getWeightAttr().getAttr());
      if (found != weights.end())
        found->second.uses.push_back(parameter.getResult());
    });
  }

  /// What cannot be differentiated, and how the loss depends on it.
  LogicalResult refuse(Operation *op) {
    const Adjoints::Path path = adjoints.getPath(op);
    InFlightDiagnostic error =
        emitError(op->getLoc())
        << op->getName().getStringRef()
        << " has no derivative, and the loss depends on ";
    if (auto parameter = path.from.getDefiningOp<nn::ParameterOp>())
      error << "'"
            << weights.lookup(parameter.getWeightAttr().getAttr())
                   .weight.getOrigin()
            << "'";
    else
      error << "the input '" << getArgumentName(cast<BlockArgument>(path.from))
            << "'";
    return error
           << " through it (" << path.nodes
           << "loss): freeze what is before it (--freeze), or replace the "
              "node in the model";
  }

  std::string getArgumentName(BlockArgument argument) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      nn::kNameAttr);
    return name ? name.str() : "x" + std::to_string(argument.getArgNumber());
  }

  LogicalResult addResults(Value loss) {
    std::vector<Result> results = {{loss, count ? "loss.sum" : "loss"}};
    if (count)
      results.push_back({count, "loss.count"});
    const size_t losses = results.size();
    Builder attributes(function.getContext());
    for (auto &[symbol, trained] : weights) {
      const StringRef name = trained.weight.getOrigin();
      if (Value sum =
              adjoints.take(trained.uses, "the gradient of '" + name + "'")) {
        results.push_back({sum, (name + ".grad").str()});
        continue;
      }
      trained.weight->removeAttr(kTrainedAttr);
      trained.weight->setAttr(
          kUntrainedAttr,
          attributes.getStringAttr("the loss does not depend on it"));
    }
    if (inputs)
      for (BlockArgument argument : function.getArguments())
        if (Value sum =
                adjoints.take(argument, "the gradient of '" +
                                            getArgumentName(argument) + "'"))
          results.push_back({sum, getArgumentName(argument) + ".grad"});
    if (results.size() == losses)
      return emitError(UnknownLoc::get(function.getContext()))
             << "the loss depends on no parameter that is trained; "
                "--list-parameters says why each is not";
    setResults(function, results);
    if (count)
      function.setResultAttr(1, kCountAttr, attributes.getUnitAttr());
    return success();
  }

  struct Trained {
    nn::WeightOp weight;
    SmallVector<Value, 1> uses;
  };
  ModuleOp module;
  func::FuncOp function;
  Operation *end;
  ImplicitLocOpBuilder b;
  Adjoints adjoints;
  Value count; ///< see kCountAttr; or null
  const bool inputs;
  llvm::MapVector<StringAttr, Trained> weights; // by symbol
};

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    func::FuncOp function = getModelFunction(getOperation());
    if (!function ||
        failed(Differentiator(getOperation(), function, inputs, mark).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::autodiff

//===- Differentiate.cpp - The gradient of each trained parameter ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reverse mode. A value is *active* if it is computed from what is
// differentiated, through floats. From the loss on, in reverse order, each op
// with active operands gives them their parts of the cotangent of its result.
//
// With replicas that share a batch, a value that depends on the samples is each
// replica's own. What it gives to a value that is the same on all, such as a
// parameter, is a share of that value's cotangent.
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Activity.h"
#include "compiler/autodiff/Cotangents.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "compiler/autodiff/Replicas.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/grad/Term.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace partita::nn::grad;

namespace partita::autodiff {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

class Differentiator {
public:
  Differentiator(ModuleOp module, func::FuncOp function, bool inputs)
      : module(module), function(function),
        end(function.getBody().front().getTerminator()),
        b(UnknownLoc::get(function.getContext()), end), inputs(inputs),
        cotangents(b) {}

  LogicalResult run() {
    findTrained();
    active = findActive(module, function, inputs);
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
    FailureOr<llvm::DenseSet<Value>> differs = findOwn(function);
    if (failed(differs))
      return failure();
    own = std::move(*differs);
    if (own.contains(loss))
      return emitError(loss.getLoc())
             << "each replica has another loss: join them before (AllReduce of "
                "the domain ai.partita)";
    if (active.contains(loss))
      cotangents.add(loss, {Term(b, loss).splat(1)});
    for (Operation &op : llvm::make_early_inc_range(
             llvm::reverse(end->getBlock()->without_terminator())))
      if (failed(differentiate(&op)))
        return failure();
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

  LogicalResult differentiate(Operation *op) {
    if (op->getNumResults() != 1 || isa<nn::ParameterOp>(op))
      return success();
    // The derivative belongs to the node, and so to its block.
    b.setLoc(op->getLoc());
    Cotangent cotangent = cotangents.take(op->getResult(0));
    if (!cotangent.value ||
        llvm::none_of(op->getOperands(),
                      [&](Value operand) { return active.contains(operand); }))
      return success();
    if (auto joins = dyn_cast<dist::DifferentiableOpInterface>(op))
      return differentiate(joins, cotangent);
    // Shares that are rounded would be added up with less precision.
    if (auto cast = dyn_cast<nn::CastOp>(op);
        cast && cotangent.isShare && narrowsBack(cast))
      cotangent = cotangents.makeWhole(
          cotangent, "the cotangent of '" + nn::getNodeName(op) + "'");
    // What a replica computes of its own gives a share to what all have.
    auto give = [&](Value operand, Value part) -> Cotangent {
      return {part, !own.contains(operand) &&
                        (cotangent.isShare || own.contains(op->getResult(0)))};
    };
    if (auto slice = dyn_cast<nn::SliceOp>(op);
        slice &&
        cotangents.addSlice(slice, give(slice.getX(), cotangent.value)))
      return success();
    SmallVector<Value> parts;
    auto differentiable = dyn_cast<nn::DifferentiableOpInterface>(op);
    if (!differentiable ||
        failed(differentiable.buildVjp(b, cotangent.value, parts)))
      return refuse(op);
    for (auto [operand, part] : llvm::zip_equal(op->getOperands(), parts))
      if (part && active.contains(operand))
        cotangents.add(operand, give(operand, part));
    return success();
  }

  static bool narrowsBack(nn::CastOp cast) {
    return elementOf(cast.getX()).getIntOrFloatBitWidth() <
           elementOf(cast.getResult()).getIntOrFloatBitWidth();
  }

  LogicalResult differentiate(dist::DifferentiableOpInterface op,
                              Cotangent cotangent) {
    Value operand = op->getOperand(0);
    const bool isOwn = own.contains(operand);
    Value part = op.givesWhole() && isOwn
                     ? Value()
                     : op.buildVjp(b, cotangent.value, cotangent.isShare);
    if (!part)
      return refuse(op);
    cotangents.add(operand, {part, !isOwn && !op.givesWhole()});
    return success();
  }

  /// What cannot be differentiated, and how the loss depends on it.
  LogicalResult refuse(Operation *op) {
    InFlightDiagnostic error =
        emitError(op->getLoc())
        << op->getName().getStringRef()
        << " has no derivative, and the loss depends on ";
    Value value = op->getResult(0);
    SmallVector<std::string> way;
    while (Value from = active.lookup(value)) {
      std::string name = nn::getNodeName(value.getDefiningOp());
      if (way.empty() || way.back() != name)
        way.push_back(name);
      value = from;
    }
    if (auto parameter = value.getDefiningOp<nn::ParameterOp>())
      error << "'"
            << weights.lookup(parameter.getWeightAttr().getAttr())
                   .weight.getOrigin()
            << "'";
    else
      error << "the input '" << getArgumentName(cast<BlockArgument>(value))
            << "'";
    error << " through it (";
    constexpr size_t kMostNodes = 6;
    for (size_t i = way.size(); i-- > 0;) {
      if (way.size() > kMostNodes && i + 3 < way.size() && i >= 3) {
        error << (i == 3 ? "... -> " : "");
        continue;
      }
      error << way[i] << " -> ";
    }
    return error
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
      if (Value sum = cotangents.takeWhole(trained.uses,
                                           "the gradient of '" + name + "'")) {
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
        if (Value sum = cotangents.takeWhole(
                argument,
                "the gradient of '" + getArgumentName(argument) + "'"))
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
  Value count; ///< see kCountAttr; or null
  const bool inputs;
  llvm::MapVector<StringAttr, Trained> weights; // by symbol
  llvm::DenseMap<Value, Value> active;
  llvm::DenseSet<Value> own; // of each replica
  Cotangents cotangents;
};

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    func::FuncOp function = getModelFunction(getOperation());
    if (!function ||
        failed(Differentiator(getOperation(), function, inputs).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::autodiff

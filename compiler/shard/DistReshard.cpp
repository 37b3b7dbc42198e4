//===- DistReshard.cpp - Tensors that are needed cut in another way -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Propagation.h"

#include <map>

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTRESHARDPASS
#include "compiler/shard/Passes.h.inc"

namespace {

/// "tensor" or "tensor, expert".
std::string describe(ArrayRef<StringAttr> axes) {
  std::string text;
  for (StringAttr axis : axes)
    text += (text.empty() ? "" : ", ") + axis.str();
  return text;
}

class Resharder {
public:
  explicit Resharder(func::FuncOp function)
      : function(function), propagation(function) {}

  LogicalResult run() {
    Block &block = function.getBody().front();
    if (propagation.getAxes().empty())
      return success();
    for (BlockArgument argument : block.getArguments())
      propagation.seed(argument, getSharding(argument));
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator()) {
      for (Value result : op.getResults())
        propagation.seed(result, getSharding(result));
      ops.push_back(&op);
    }
    for (auto parameter : block.getOps<nn::ParameterOp>())
      parameters.try_emplace(parameter.getWeightAttr(), parameter);
    for (Operation *op : ops)
      if (!rates.isLoad(op) && failed(visit(op)))
        return failure();
    for (OpOperand &operand : block.getTerminator()->getOpOperands())
      bringOut(operand);
    return verify();
  }

private:
  /// The host gets whole outputs. The new value of a state is cut as the state
  /// is.
  void bringOut(OpOperand &result) {
    auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
        result.getOperandNumber(), nn::kStateAttr);
    if (!state)
      return bring(result, {}, "it is an output of the model");
    if (auto parameter = parameters.find(state); parameter != parameters.end())
      bring(result, getSharding(parameter->second),
            "every replica has all of '" + state.getValue().str() + "'");
  }

  /// Lets an op read its operands, and others its result, as is written on
  /// them.
  LogicalResult visit(Operation *op) {
    const nn::ShardingRule *rule = propagation.getRule(op);
    const FactorShardings factors = propagation.getFactorShardings(op);
    const std::string name = "'" + nn::getNodeName(op) + "'";
    for (OpOperand &operand : op->getOpOperands()) {
      Sharding needed;
      if (rule)
        needed =
            projectSharding(*rule, rule->operands[operand.getOperandNumber()],
                            factors, propagation.getAxes());
      bring(operand, needed, name + " reads it " + describeNeed(needed));
    }
    if (op->getNumResults() != 1)
      return success();
    const SmallVector<dist::PartialAttr> partials = propagation.getPartials(op);
    Sharding made;
    if (rule)
      made = projectSharding(*rule, rule->results[0], factors,
                             propagation.getAxes());
    const Sharding wanted = propagation.getSharding(op->getResult(0));
    if (partials.empty() && isSame(made, wanted))
      return success();
    Value result = op->getResult(0);
    const int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto joined = dist::ReshardOp::create(
        builder, op->getLoc(), result,
        partials.empty() ? name + " makes it in another way"
        : op->hasAttr(kOwnAttr)
            ? "each replica adds its part of " + name + " up"
        : isa<nn::SumMicroBatchesOp>(op)
            ? "each replica sums " + name + " over micro-batches of its own"
            : name + " sums over what is cut along " +
                  describePartials(partials));
    result.replaceAllUsesExcept(joined, joined);
    setSharding(joined, wanted);
    propagation.seed(joined, wanted);
    dist::ShardingAttr sharding = getAttr(op->getContext(), made, rank);
    op->removeAttr(dist::kShardingAttr);
    if (!partials.empty() || !isWhole(made))
      op->setAttr(dist::kShardingAttr,
                  dist::ShardingAttr::get(op->getContext(), sharding.getDims(),
                                          partials));
    return success();
  }

  static std::string describePartials(ArrayRef<dist::PartialAttr> partials) {
    std::string text;
    for (dist::PartialAttr partial : partials)
      text += (text.empty() ? "" : ", ") + partial.getAxis().str();
    return text;
  }

  static std::string describeNeed(const Sharding &needed) {
    for (auto [dim, cut] : llvm::enumerate(needed))
      if (!cut.isWhole())
        return "cut along " + describe(cut.axes) + " in dimension " +
               std::to_string(dim);
    return "whole";
  }

  /// Once for all that need a value cut in the same way. What depends on
  /// weights only is there in every way. Of a state, each node has its own,
  /// just before it is read: nodes may be on different devices.
  void bring(OpOperand &operand, const Sharding &needed,
             const std::string &reason) {
    Value value = operand.get();
    if (rates.isLoad(value) || isSame(getSharding(value), needed))
      return;
    const int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    const Attribute key = getAttr(value.getContext(), needed, rank);
    const bool isState = isOfState(value);
    Value &made =
        known[{value.getAsOpaquePointer(), key.getAsOpaquePointer(),
               isState ? nn::getNodeName(operand.getOwner()) : std::string()}];
    if (!made) {
      OpBuilder builder(value.getContext());
      if (isState)
        builder.setInsertionPoint(operand.getOwner());
      else
        builder.setInsertionPointAfterValue(value);
      auto reshard = dist::ReshardOp::create(
          builder, operand.getOwner()->getLoc(), value, reason);
      if (isa<func::ReturnOp>(operand.getOwner()))
        reshard->setLoc(value.getLoc());
      setSharding(reshard, needed);
      made = reshard;
    }
    operand.set(made);
  }

  /// Partial sums are read by nothing but what joins them.
  LogicalResult verify() {
    for (Operation &op : function.getBody().front().without_terminator())
      for (Value result : op.getResults())
        if (dist::ShardingAttr sharding = getShardingAttr(result);
            sharding && !sharding.getPartial().empty())
          for (Operation *user : result.getUsers())
            if (!isa<dist::ReshardOp>(user))
              return op.emitError("'")
                     << nn::getNodeName(&op) << "' makes partial sums, which '"
                     << nn::getNodeName(user) << "' reads before they are "
                     << "joined";
    return success();
  }

  func::FuncOp function;
  Propagation propagation;
  analysis::Rates rates;
  llvm::DenseMap<Attribute, nn::ParameterOp> parameters; ///< the first of each
  std::map<std::tuple<const void *, const void *, std::string>, Value> known;
};

struct DistReshardPass : impl::DistReshardPassBase<DistReshardPass> {
  LogicalResult run(func::FuncOp function) override {
    return Resharder(function).run();
  }
};

} // namespace
} // namespace partita::shard

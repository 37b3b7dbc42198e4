//===- StateHomes.cpp - The device that has a state -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/StateHomes.h"

#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Phases.h"

using namespace mlir;

namespace partita::pipeline {

/// The state that a value is; null: it is none.
static nn::ParameterOp getState(Value value) {
  auto parameter = value.getDefiningOp<nn::ParameterOp>();
  return parameter && parameter.getState() ? parameter : nn::ParameterOp();
}

std::map<std::string, int64_t> findStateStages(func::FuncOp function) {
  std::map<std::string, int64_t> stages;
  Block &block = function.getBody().front();
  if (auto known = function->getAttrOfType<DictionaryAttr>(kStateStagesAttr))
    for (NamedAttribute state : known)
      stages[state.getName().str()] =
          cast<IntegerAttr>(state.getValue()).getInt();
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (auto state = function.getResultAttrOfType<FlatSymbolRefAttr>(
            result.getOperandNumber(), nn::kStateAttr))
      if (Operation *update = result.get().getDefiningOp();
          update && getStage(update) >= 0)
        stages.try_emplace(state.getValue().str(), getStage(update));
  for (Operation *op : getActiveOps(block))
    for (Value operand : op->getOperands())
      if (nn::ParameterOp state = getState(operand))
        stages.try_emplace(state.getWeight().str(), getStage(op));
  return stages;
}

LogicalResult handStatesOn(func::FuncOp function) {
  Block &block = function.getBody().front();
  const SmallVector<int64_t> devices = getDevices(function);
  const std::map<std::string, int64_t> stages = findStateStages(function);
  const Phases phases(function);
  OpBuilder b(&block, block.begin());
  llvm::DenseMap<Attribute, Value> handed;
  for (Operation *op : getActiveOps(block))
    for (OpOperand &operand : op->getOpOperands()) {
      nn::ParameterOp state = getState(operand.get());
      if (!state)
        continue;
      const int64_t home = stages.at(state.getWeight().str());
      if (devices[home] == devices[getStage(op)])
        continue;
      if (phases.get(op) == dist::Phase::update)
        return op->emitError()
               << "'" << nn::getNodeName(op) << "' updates something on device "
               << devices[getStage(op)] << " and reads '" << state.getWeight()
               << "', which is updated on device " << devices[home]
               << ": put the nodes that read it on one device, or freeze it "
                  "(--freeze)";
      Value &value = handed[state.getWeightAttr()];
      if (!value) {
        auto loc = NameLoc::get(b.getStringAttr(state.getWeight()));
        auto own = nn::ParameterOp::create(b, loc, state.getType(),
                                           state.getWeightAttr(),
                                           state.getStateAttr());
        auto hand = nn::ReshapeOp::create(b, loc, state.getType(), own);
        hand->setAttr(dist::kStageAttr, b.getI64IntegerAttr(home));
        value = hand;
      }
      operand.set(value);
    }
  return success();
}

void repeatSums(func::FuncOp function) {
  SmallVector<nn::SumMicroBatchesOp> sums(
      function.getOps<nn::SumMicroBatchesOp>());
  for (nn::SumMicroBatchesOp sum : sums) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : sum.getResult().getUses())
      if (getStage(use.getOwner()) == getStage(sum))
        uses.push_back(&use);
    for (OpOperand *use : uses) {
      if (sum.getResult().hasOneUse())
        break;
      OpBuilder b(sum);
      use->set(b.clone(*sum)->getResult(0));
    }
  }
}

} // namespace partita::pipeline

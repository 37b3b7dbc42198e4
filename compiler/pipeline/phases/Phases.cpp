//===- Phases.cpp - Which part of a step an op belongs to -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/Phases.h"

#include "compiler/analysis/Rates.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/nn/CheckAttr.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita::pipeline {

using dist::Phase;

namespace {

/// All ops from which a value is computed. What a guard chooses by is not
/// followed. Replicas may gather the parts of what it has chosen.
void addSources(Value value, llvm::DenseSet<Operation *> &found) {
  SmallVector<Value> left = {value};
  while (!left.empty()) {
    Operation *op = left.pop_back_val().getDefiningOp();
    if (!op || !found.insert(op).second)
      continue;
    if (auto guard = dyn_cast<nn::SelectOp>(op);
        guard && guard->hasAttr(nn::kGuardAttr))
      left.push_back(guard.getOperand(1));
    else
      llvm::append_range(left, op->getOperands());
  }
}

} // namespace

Phases::Phases(func::FuncOp function) {
  Block &block = function.getBody().front();
  analysis::Rates rates;
  rates.moveIntoUpdates(block);
  const SmallVector<Operation *> active = getActiveOps(block);
  for (Operation *op : active)
    trained |= rates.getRate(op) == analysis::Rate::update;
  // The loss is the first result of a model that is trained. Running statistics
  // need no gradient, either, though they may be kept as they are because of
  // some.
  llvm::DenseSet<Operation *> forward;
  if (trained)
    for (OpOperand &result : block.getTerminator()->getOpOperands())
      if (unsigned i = result.getOperandNumber();
          i == 0 || function.getResultAttr(i, nn::kStatisticAttr))
        addSources(result.get(), forward);
  llvm::DenseMap<Attribute, Phase> ofCluster;
  for (Operation *op : active) {
    Phase phase = Phase::prologue;
    if (rates.getRate(op) == analysis::Rate::update)
      phase = Phase::update;
    else if (rates.getRate(op) == analysis::Rate::micro_batch)
      phase =
          trained && !forward.contains(op) ? Phase::backward : Phase::forward;
    phases[op] = phase;
    Attribute cluster = op->getAttr(nn::kClusterAttr);
    if (!cluster)
      continue;
    auto [it, isNew] = ofCluster.try_emplace(cluster, phase);
    // What makes something of the loss, too, must not come later.
    const bool isForward = std::min(it->second, phase) == Phase::forward &&
                           std::max(it->second, phase) == Phase::backward;
    it->second = isForward ? Phase::forward : std::max(it->second, phase);
  }
  for (Operation *op : active)
    if (Attribute cluster = op->getAttr(nn::kClusterAttr))
      phases[op] = ofCluster.lookup(cluster);
}

} // namespace partita::pipeline

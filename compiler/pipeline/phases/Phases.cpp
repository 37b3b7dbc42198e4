//===- Phases.cpp - Which part of a step an op belongs to -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/Phases.h"

#include "compiler/analysis/Rates.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/nn/CheckAttr.h"


using namespace mlir;

namespace partita::pipeline {

using dist::Phase;

namespace {

/// What an op is computed from. What a guard chooses by does not count.
OperandRange getSources(Operation *op) {
  const bool isGuard = isa<nn::SelectOp>(op) && op->hasAttr(nn::kGuardAttr);
  return isGuard ? op->getOperands().slice(1, 1) : op->getOperands();
}

/// All ops from which a value is computed. Replicas may gather the parts of
/// what a guard has chosen.
void addSources(Value value, llvm::DenseSet<Operation *> &found) {
  SmallVector<Value> left = {value};
  while (!left.empty())
    if (Operation *op = left.pop_back_val().getDefiningOp();
        op && found.insert(op).second)
      llvm::append_range(left, getSources(op));
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
  findEarly(active);
}

/// Nor must what that is made of: the derivative of a loss that is a sum may be
/// known before the loss is, and be computed together with ops of forward.
void Phases::findEarly(ArrayRef<Operation *> active) {
  llvm::DenseMap<Attribute, SmallVector<Operation *>> members;
  SmallVector<std::pair<Operation *, bool>> left; // and whether it is early
  for (Operation *op : active) {
    if (Attribute cluster = op->getAttr(nn::kClusterAttr))
      members[cluster].push_back(op);
    if (phases[op] == Phase::forward)
      left.push_back({op, false});
  }
  llvm::DenseSet<Operation *> seen[2];
  while (!left.empty()) {
    auto [reader, isOfEarly] = left.pop_back_val();
    for (Value source : getSources(reader)) {
      Operation *op = source.getDefiningOp();
      if (!op || early.contains(op))
        continue;
      auto found = phases.find(op);
      if (found == phases.end()) { // a view, say
        if (seen[isOfEarly].insert(op).second)
          left.push_back({op, isOfEarly});
        continue;
      }
      // Labels that it needs are no longer the loss's alone.
      if (found->second != Phase::backward &&
          !(found->second == Phase::forward && isOfEarly && isOfLoss(op)))
        continue;
      SmallVector<Operation *> whole = {op};
      if (Attribute cluster = op->getAttr(nn::kClusterAttr))
        whole = members.lookup(cluster);
      for (Operation *member : whole) {
        phases[member] = Phase::forward;
        early.insert(member);
        left.push_back({member, true});
      }
    }
  }
}

} // namespace partita::pipeline

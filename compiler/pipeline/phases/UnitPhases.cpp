//===- UnitPhases.cpp - Which unit of its stage computes an op ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/UnitPhases.h"

#include "compiler/analysis/Recomputed.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::pipeline {

using dist::Phase;

FailureOr<BackwardUnits> getBackwardUnits(func::FuncOp function,
                                          ArrayRef<int64_t> order) {
  const auto named = PARTITA_TRY(getSchedule(function));
  if (named.file) // it says of all stages when gradients come
    return BackwardUnits{named.splitsBackward(), /*ofLastStage=*/true};
  // One stage has nobody who waits for it.
  const bool areSplit = named.splitsBackward() && order.size() > 1;
  return BackwardUnits{areSplit, /*ofLastStage=*/areSplit};
}

UnitPhases::UnitPhases(func::FuncOp function, ArrayRef<int64_t> order,
                       BackwardUnits backward)
    : phases(function), active(getActiveOps(function.getBody().front())) {
  if (!phases.isTrained())
    return;
  findReturning(order, backward.ofLastStage);
  areSplit = backward.areSplit;
  if (areSplit)
    findAwaited();
}

Phase UnitPhases::get(Operation *op) const {
  if (!isOfMicroBatch(op))
    return phases.get(op);
  if (!returning.contains(op))
    return Phase::forward;
  if (!areSplit)
    return Phase::backward;
  return awaited.contains(op) ? Phase::input_gradients
                              : Phase::weight_gradients;
}

bool UnitPhases::isOfMicroBatch(Operation *op) const {
  const Phase phase = phases.get(op);
  return phase == Phase::forward || phase == Phase::backward;
}

void UnitPhases::findReturning(ArrayRef<int64_t> order, bool ofLastStage) {
  llvm::DenseMap<int64_t, int64_t> placeOf;
  for (auto [place, stage] : llvm::enumerate(order))
    placeOf[stage] = static_cast<int64_t>(place);
  // The latest stage on which an op depends. The gradients of the last one
  // depend on a stage after it, as it were, where they are to be a backward.
  llvm::DenseMap<Operation *, int64_t> latest;
  llvm::DenseMap<Attribute, int64_t> ofCluster;
  const int64_t end = static_cast<int64_t>(order.size());
  auto startOf = [&](Operation *op) {
    const int64_t place = placeOf.lookup(getStage(op));
    const bool isLast = place + 1 == end;
    const bool comesBack = op->hasAttr(analysis::kRecomputedAttr) ||
                           (isLast && phases.get(op) == Phase::backward);
    return comesBack && (ofLastStage || !isLast) ? place + 1 : place;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (Operation *op : active) {
      int64_t reach = startOf(op);
      for (Value operand : op->getOperands())
        if (auto it = latest.find(operand.getDefiningOp());
            it != latest.end() && isOfMicroBatch(it->first))
          reach = std::max(reach, it->second);
      if (Attribute cluster = op->getAttr(nn::kClusterAttr)) {
        int64_t &all = ofCluster[cluster];
        reach = all = std::max(all, reach);
      }
      auto [it, isNew] = latest.try_emplace(op, reach);
      changed |= isNew || it->second != reach;
      it->second = reach;
    }
  }
  for (auto [op, reach] : latest)
    if (reach > placeOf.lookup(getStage(op)))
      returning.insert(op);
}

/// What other stages wait for in a micro-batch, and what that is made of. A
/// cluster is one op here.
void UnitPhases::findAwaited() {
  llvm::DenseMap<Attribute, SmallVector<Operation *>> clusters;
  for (Operation *op : active)
    if (Attribute cluster = op->getAttr(nn::kClusterAttr))
      clusters[cluster].push_back(op);
  SmallVector<Operation *> left;
  auto add = [&](Operation *op) {
    if (op && returning.contains(op) && isOfMicroBatch(op) &&
        awaited.insert(op).second)
      left.push_back(op);
  };
  for (Operation *op : active)
    if (isOfMicroBatch(op))
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && getStage(producer) != getStage(op))
          add(producer);
  while (!left.empty()) {
    Operation *op = left.pop_back_val();
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        add(producer);
    if (Attribute cluster = op->getAttr(nn::kClusterAttr))
      for (Operation *other : clusters.lookup(cluster))
        add(other);
  }
}

} // namespace partita::pipeline

//===- StepUnits.cpp - Units that come once a step ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/phases/UnitPhases.h"

#include "compiler/model/Decision.h"
#include "compiler/pipeline/partition/PartitionGraph.h"

#include <map>

using namespace mlir;

namespace partita::pipeline {
namespace {

/// Gives the ops of one phase to units. A cluster is one op here.
class UnitMaker {
public:
  UnitMaker(ArrayRef<Operation *> ops, ArrayRef<int64_t> order)
      : ops(ops), order(order) {
    for (Operation *op : ops)
      members[leaderOf(op)].push_back(op);
  }

  /// The units, in their order; `part` is that of each op.
  SmallVector<UnitKey> make(dist::Phase phase,
                            llvm::DenseMap<Operation *, int> &parts) {
    placeEarly();
    moveBack();
    std::map<int, UnitKey> made; // by place in the order
    for (auto [leader, unit] : unitOf)
      made[unit] = {stages[unit], phase, 0};
    std::map<int64_t, int> counts; // by stage
    SmallVector<UnitKey> units;
    for (auto &[unit, key] : made) {
      key.part = counts[key.stage]++;
      units.push_back(key);
    }
    for (Operation *op : ops)
      parts[op] = made.at(unitOf.lookup(leaderOf(op))).part;
    return units;
  }

private:
  /// The first op of a cluster, or the op itself.
  Operation *leaderOf(Operation *op) {
    Attribute cluster = op->getAttr(nn::kClusterAttr);
    if (!cluster)
      return op;
    return leaders.try_emplace(cluster, op).first->second;
  }

  bool isOfPhase(Operation *op) { return op && members.contains(leaderOf(op)); }

  /// Units take turns by stage, and compute all that can be computed. Where
  /// clusters wait for one another, whoever forms the units will say so.
  void placeEarly() {
    size_t before = 0;
    for (bool isStuck = false; unitOf.size() < members.size();
         isStuck = unitOf.size() == before) {
      if (isStuck && !llvm::all_of(ops, [&](Operation *op) {
            return llvm::is_contained(order, getStage(op));
          }))
        llvm::report_fatal_error("an op is of a stage that is in no order");
      before = unitOf.size();
      for (int64_t stage : order)
        placeUnit(stage, isStuck);
    }
  }

  void placeUnit(int64_t stage, bool all) {
    const int unit = static_cast<int>(stages.size());
    bool isUsed = false;
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *op : ops)
        if (leaderOf(op) == op && getStage(op) == stage &&
            !unitOf.contains(op) && (all || isReady(op))) {
          unitOf[op] = unit;
          changed = isUsed = true;
        }
    }
    if (isUsed)
      stages.push_back(stage);
  }

  bool isReady(Operation *leader) {
    return llvm::all_of(members.find(leader)->second, [&](Operation *op) {
      return llvm::all_of(op->getOperands(), [&](Value operand) {
        Operation *producer = operand.getDefiningOp();
        return !isOfPhase(producer) || leaderOf(producer) == leader ||
               unitOf.contains(leaderOf(producer));
      });
    });
  }

  /// What only later units of a stage read is computed by them.
  void moveBack() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *leader : llvm::reverse(ops))
        if (leaderOf(leader) == leader)
          if (const int unit = findFirstReader(leader);
              unit > unitOf[leader] && stages[unit] == getStage(leader)) {
            unitOf[leader] = unit;
            changed = true;
          }
    }
  }

  /// The first unit that reads what a cluster makes, if all its readers are of
  /// this phase; else -1.
  int findFirstReader(Operation *leader) {
    int first = -1;
    for (Operation *op : members.find(leader)->second)
      for (Operation *user : op->getUsers()) {
        if (!isOfPhase(user))
          return -1;
        if (leaderOf(user) == leader)
          continue;
        const int unit = unitOf.lookup(leaderOf(user));
        first = first < 0 ? unit : std::min(first, unit);
      }
    return first;
  }

  ArrayRef<Operation *> ops;
  ArrayRef<int64_t> order;
  llvm::DenseMap<Attribute, Operation *> leaders; ///< by cluster
  llvm::DenseMap<Operation *, SmallVector<Operation *>> members;
  SmallVector<int64_t> stages;             ///< by unit
  llvm::DenseMap<Operation *, int> unitOf; ///< by first op of a cluster
};

} // namespace

StepUnits::StepUnits(func::FuncOp function, ArrayRef<int64_t> order,
                     const UnitPhases &phases) {
  SmallVector<Operation *> first, last;
  for (Operation *op : getActiveOps(function.getBody().front()))
    if (phases.get(op) == dist::Phase::prologue)
      first.push_back(op);
    else if (phases.get(op) == dist::Phase::update)
      last.push_back(op);
  prologues = UnitMaker(first, order).make(dist::Phase::prologue, parts);
  // What updates need of the loss goes back through the stages.
  const SmallVector<int64_t> back(llvm::reverse(order));
  updates = UnitMaker(last, back).make(dist::Phase::update, parts);
}

} // namespace partita::pipeline

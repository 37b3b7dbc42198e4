//===- ClusterGraph.cpp - Clusters while they grow ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/fuse/ClusterGraph.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NodeScopes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

using namespace mlir;

namespace partita::fuse {

bool isFreeToRepeat(Operation *op) {
  auto costed = dyn_cast<nn::CostOpInterface>(op);
  return costed && costed.getCost().free;
}

ClusterGraph::ClusterGraph(Block &block) : block(block) {
  for (Operation &op : block) {
    order[&op] = places[&op] = static_cast<unsigned>(byPlace.size());
    byPlace.push_back(&op);
  }
  rates.moveIntoUpdates(block);
  findStages();
  findUpdates();
}

int64_t ClusterGraph::getCluster(Operation *op) const {
  auto it = clusterOf.find(op);
  return it == clusterOf.end() ? -1 : it->second;
}

bool ClusterGraph::isFree(Operation *op) const {
  return op && op->getBlock() == &block && op->getNumResults() == 1 &&
         isa<nn::NNDialect>(op->getDialect()) &&
         !isa<nn::ParameterOp, nn::SumMicroBatchesOp>(op) && getCluster(op) < 0;
}

void ClusterGraph::sort(Ops &ops) const {
  llvm::sort(ops, [&](Operation *a, Operation *b) {
    return order.lookup(a) < order.lookup(b);
  });
}

SmallVector<Value> ClusterGraph::getInputs(const Ops &ops) const {
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  llvm::DenseSet<Value> seen;
  SmallVector<Value> inputs;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if ((!operand.getDefiningOp() ||
           !inside.contains(operand.getDefiningOp())) &&
          seen.insert(operand).second)
        inputs.push_back(operand);
  return inputs;
}

SmallVector<Value> ClusterGraph::getResults(const Ops &ops) const {
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  SmallVector<Value> results;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inside.contains(user); }))
        results.push_back(result);
  return results;
}

void ClusterGraph::forEachOf(
    Operation *op, llvm::function_ref<void(Operation *)> visit) const {
  const int64_t cluster = getCluster(op);
  if (cluster < 0)
    return visit(op);
  for (Operation *member : clusters[static_cast<size_t>(cluster)])
    visit(member);
}

bool ClusterGraph::findProducers(const Ops &ops, unsigned first,
                                 llvm::DenseSet<unsigned> &found) const {
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  SmallVector<Operation *> worklist;
  auto visit = [&](Operation *op) {
    // What is placed before all the ops depends on none of them.
    if (op && op->getBlock() == &block && places.lookup(op) >= first &&
        found.insert(places.lookup(op)).second)
      worklist.push_back(op);
  };
  for (Value input : getInputs(ops))
    visit(input.getDefiningOp());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (inside.contains(op))
      return false;
    forEachOf(op, [&](Operation *member) {
      for (Value operand : member->getOperands())
        visit(operand.getDefiningOp());
    });
  }
  return true;
}

unsigned ClusterGraph::getFirstPlace(const Ops &ops) const {
  unsigned first = ~0u;
  for (Operation *op : ops)
    first = std::min(first, places.lookup(op));
  return first;
}

void ClusterGraph::findStages() {
  auto named = block.getParentOp()->getAttrOfType<DictionaryAttr>(
      dist::kAnnotatedStagesAttr);
  const bool hasStates =
      llvm::any_of(block.getOps<nn::ParameterOp>(),
                   [](nn::ParameterOp op) { return op.getState(); });
  if (!named || !hasStates)
    return;
  for (Operation &op : block)
    if (!isFreeToRepeat(&op) && rates.getRate(&op) != analysis::Rate::load)
      for (StringRef name : nn::getNodeNames(op.getLoc()))
        if (auto stage = named.getAs<IntegerAttr>(name))
          stages[&op] = stage.getInt(); // the last one holds
}

void ClusterGraph::findUpdates() {
  auto function = dyn_cast<func::FuncOp>(block.getParentOp());
  if (!function)
    return;
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (Operation *op = result.get().getDefiningOp();
        op && function.getResultAttr(result.getOperandNumber(), nn::kStateAttr))
      if (auto names = nn::getNodeNames(op->getLoc()); !names.empty())
        updates[op] = names.front();
  if (updates.empty())
    return;
  for (Operation &op : llvm::reverse(block))
    if (rates.getRate(&op) == analysis::Rate::update)
      for (Operation *user : op.getUsers())
        if (auto of = updates.find(user); of != updates.end()) {
          const StringRef name = of->second;
          auto [own, isNew] = updates.try_emplace(&op, name);
          if (own->second != name)
            own->second = "";
        }
}

/// Whether all ops that `owners` knows belong to the same owner, but for those
/// that are free to repeat.
template <typename Owner>
static bool haveOneOwner(const Ops &ops,
                         const llvm::DenseMap<Operation *, Owner> &owners) {
  std::optional<Owner> first;
  for (Operation *op : ops)
    if (auto it = owners.find(op); it != owners.end() && !isFreeToRepeat(op)) {
      if (first.value_or(it->second) != it->second)
        return false;
      first = it->second;
    }
  return true;
}

bool ClusterGraph::isConvex(const Ops &ops) const {
  if (!haveOneOwner(ops, stages) || !haveOneOwner(ops, updates))
    return false;
  llvm::DenseSet<unsigned> found;
  return findProducers(ops, getFirstPlace(ops), found);
}

void ClusterGraph::addCluster(const Ops &ops, nn::ClusterKind kind) {
  // Between the places of its ops the cluster's producers move before it, and
  // everything else behind it.
  const unsigned first = getFirstPlace(ops);
  unsigned last = first;
  for (Operation *op : ops)
    last = std::max(last, places.lookup(op));
  llvm::DenseSet<unsigned> producers;
  if (last > first)
    findProducers(ops, first, producers);

  Ops sorted(ops);
  sort(sorted);
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  SmallVector<Operation *> before, behind;
  for (unsigned place = first; place <= last; ++place)
    if (Operation *op = byPlace[place]; op && !inside.contains(op))
      (producers.contains(place) ? before : behind).push_back(op);

  for (Operation *op : sorted)
    clusterOf[op] = clusters.size();
  clusters.push_back(sorted);
  kinds.push_back(kind);
  unsigned place = first;
  auto put = [&](Operation *op) {
    byPlace[place] = op;
    forEachOf(op, [&](Operation *member) { places[member] = place; });
    ++place;
  };
  llvm::for_each(before, put);
  put(sorted.front());
  llvm::for_each(behind, put);
  for (; place <= last; ++place)
    byPlace[place] = nullptr;
}

} // namespace partita::fuse

//===- ClusterGraph.cpp - Clusters while they grow ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/fuse/ClusterGraph.h"

#include "dialects/nn/NNDialect.h"

using namespace mlir;

namespace partita::fuse {

bool isFreeToRepeat(Operation *op) {
  auto costed = dyn_cast<nn::CostOpInterface>(op);
  return costed && costed.getCost().free;
}

ClusterGraph::ClusterGraph(Block &block) : block(block) {
  unsigned number = 0;
  for (Operation &op : block)
    order[&op] = number++;
}

int64_t ClusterGraph::getCluster(Operation *op) const {
  auto it = clusterOf.find(op);
  return it == clusterOf.end() ? -1 : it->second;
}

bool ClusterGraph::isFree(Operation *op) const {
  return op && op->getBlock() == &block && op->getNumResults() == 1 &&
         isa<nn::NNDialect>(op->getDialect()) && !isa<nn::ParameterOp>(op) &&
         getCluster(op) < 0;
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

bool ClusterGraph::isConvex(const Ops &ops) const {
  // Does an input depend on the ops? Walk backward from the inputs.
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end()), seen;
  unsigned first = ~0u;
  for (Operation *op : ops)
    first = std::min(first, order.lookup(op));
  SmallVector<Operation *> worklist;
  auto visit = [&](Operation *op) {
    if (op && seen.insert(op).second)
      worklist.push_back(op);
  };
  for (Value input : getInputs(ops))
    visit(input.getDefiningOp());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (inside.contains(op))
      return false;
    int64_t cluster = getCluster(op);
    if (cluster >= 0)
      for (Operation *other : clusters[cluster])
        visit(other);
    // What stands before all the ops cannot depend on them, unless by way of a
    // cluster that reaches further.
    if (cluster < 0 && order.lookup(op) < first && clusters.empty())
      continue;
    for (Value operand : op->getOperands())
      visit(operand.getDefiningOp());
  }
  return true;
}

void ClusterGraph::addCluster(const Ops &ops, nn::ClusterKind kind) {
  Ops sorted(ops);
  sort(sorted);
  for (Operation *op : sorted)
    clusterOf[op] = clusters.size();
  clusters.push_back(std::move(sorted));
  kinds.push_back(kind);
}

} // namespace partita::fuse

//===- StageOrder.cpp - Stages in the order of their dependences ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/StageOrder.h"

#include "compiler/cost/CostModel.h"
#include "compiler/model/Decision.h"
#include "compiler/model/NodeNames.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Phases.h"

#include "dialects/nn/NNDialect.h"

#include <map>
#include <set>

using namespace mlir;

namespace partita::pipeline {
namespace {

/// An op of one stage that reads what an op of another one makes.
struct Dependence {
  Operation *producer;
  Operation *consumer;
};

using StageGraph = std::map<int64_t, std::map<int64_t, Dependence>>;

/// Stages of a shortest path from `from` back to itself; empty if there is
/// none.
SmallVector<int64_t> findCycle(const StageGraph &graph, int64_t from) {
  std::map<int64_t, int64_t> parent;
  SmallVector<int64_t> queue = {from};
  for (size_t i = 0; i < queue.size(); ++i) {
    auto it = graph.find(queue[i]);
    if (it == graph.end())
      continue;
    for (const auto &[to, dependence] : it->second) {
      if (!parent.emplace(to, queue[i]).second)
        continue;
      if (to != from) {
        queue.push_back(to);
        continue;
      }
      SmallVector<int64_t> path = {from};
      for (int64_t s = parent[from]; s != from; s = parent[s])
        path.push_back(s);
      std::reverse(path.begin() + 1, path.end());
      return path;
    }
  }
  return {};
}

LogicalResult reportCycle(func::FuncOp function, const StageGraph &graph) {
  SmallVector<int64_t> best;
  for (const auto &[stage, targets] : graph)
    if (SmallVector<int64_t> cycle = findCycle(graph, stage);
        !cycle.empty() && (best.empty() || cycle.size() < best.size()))
      best = cycle;
  InFlightDiagnostic diagnostic =
      emitError(graph.at(best[0]).at(best[1 % best.size()]).consumer->getLoc())
      << "stages depend on each other in a cycle:";
  for (size_t i = 0; i < best.size(); ++i) {
    int64_t from = best[i], to = best[(i + 1) % best.size()];
    const Dependence &dependence = graph.at(from).at(to);
    diagnostic << (i ? "; '" : " '") << nn::getNodeName(dependence.consumer)
               << "' of stage " << to << " reads '"
               << nn::getNodeName(dependence.producer) << "' of stage " << from;
  }
  return diagnostic << ": put them into one stage, or split one into two";
}

} // namespace

FailureOr<SmallVector<int64_t>> getStageOrder(func::FuncOp function) {
  StageGraph graph;
  std::map<int64_t, std::set<int64_t>> sources;
  // Gradients go through the stages in the opposite order, and what comes once
  // a step in any.
  const Phases phases(function);
  for (Operation *op : getActiveOps(function.getBody().front())) {
    int64_t stage = getStage(op);
    if (stage < 0)
      return op->emitError() << "'" << nn::getNodeName(op) << "' has no stage";
    sources[stage];
    if (phases.get(op) != dist::Phase::forward)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && phases.get(producer) == dist::Phase::forward)
        if (int64_t from = getStage(producer); from >= 0 && from != stage) {
          graph[from].try_emplace(stage, Dependence{producer, op});
          sources[stage].insert(from);
        }
  }
  SmallVector<int64_t> order;
  std::set<int64_t> done;
  while (order.size() < sources.size()) {
    size_t before = order.size();
    for (const auto &[stage, from] : sources)
      if (!done.count(stage) &&
          llvm::all_of(from, [&](int64_t s) { return done.count(s) > 0; })) {
        done.insert(stage);
        order.push_back(stage);
        break;
      }
    if (order.size() == before) {
      (void)reportCycle(function, graph);
      return failure();
    }
  }
  return order;
}

std::map<std::string, int64_t> getStagesOfNodes(func::FuncOp function) {
  const Phases phases(function);
  std::map<std::string, std::pair<int64_t, int64_t>> heaviest; // flops, stage
  for (Operation *op : getActiveOps(function.getBody().front())) {
    if (phases.get(op) != dist::Phase::forward)
      continue;
    const std::pair<int64_t, int64_t> own(countFlops(op), getStage(op));
    for (StringRef name : getNodeNames(op->getLoc())) {
      auto [it, isNew] = heaviest.try_emplace(name.str(), own);
      if (!isNew && own.first > it->second.first)
        it->second = own;
    }
  }
  std::map<std::string, int64_t> stages;
  for (const auto &[name, best] : heaviest)
    stages[name] = best.second;
  return stages;
}

} // namespace partita::pipeline

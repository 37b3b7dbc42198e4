//===- KeptValues.cpp - What of forward is kept for gradients -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each value is an edge that costs its bytes. What cannot be computed again
// comes from the source, and what gradients read goes to the sink. The edges of
// the cheapest cut are the values that are kept.
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/recompute/KeptValues.h"

#include "compiler/pipeline/phases/StateHomes.h"
#include "compiler/pipeline/recompute/FlowNetwork.h"
#include "compiler/pipeline/recompute/Segments.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;

namespace partita::pipeline {
namespace {

/// Values that are reshapes of each other have the same bytes.
Value getStored(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>()) {
    if (reshape->hasAttr(nn::kClusterAttr))
      break;
    value = reshape.getX();
  }
  return value;
}

/// A value that forward of the stage makes or reads.
struct Flowing {
  int64_t bytes = 0;
  int producer = -1;         ///< a cluster; -1: not of this stage's forward
  int lastReader = -1;       ///< of forward
  std::vector<int> readers;  ///< of forward
  bool isNeeded = false;     ///< gradients read it
  bool isCheckpoint = false; ///< it enters a segment
  int vertex = -1;           ///< where its edge begins
};

class Chooser {
public:
  Chooser(const PartitionGraph &graph, const StageClusters &stage)
      : graph(graph), stage(stage),
        isForward(stage.forward.begin(), stage.forward.end()),
        isBackward(stage.backward.begin(), stage.backward.end()),
        gathered(findGathered(graph.function)) {
    collect();
  }

  /// Marks what enters segments. Returns the first cluster of the last one,
  /// whose gradients are the first: nothing of it has to be computed again.
  int cutSegments() {
    llvm::DenseMap<int, int> placeOf;
    for (auto [place, cluster] : llvm::enumerate(stage.forward))
      placeOf[cluster] = static_cast<int>(place);
    std::vector<std::vector<MadeValue>> made(stage.forward.size());
    for (const auto &[value, flowing] : values)
      if (flowing.producer >= 0)
        made[placeOf[flowing.producer]].push_back(
            {flowing.bytes,
             flowing.lastReader < 0 ? -1 : placeOf[flowing.lastReader],
             flowing.isNeeded});
    const std::vector<int> segments = chooseSegments(made);
    for (auto &[value, flowing] : values)
      flowing.isCheckpoint = flowing.producer >= 0 && flowing.lastReader >= 0 &&
                             segments[placeOf[flowing.lastReader]] !=
                                 segments[placeOf[flowing.producer]];
    for (auto [place, cluster] : llvm::enumerate(stage.forward))
      if (segments[place] == segments.back())
        return cluster;
    return 0;
  }

  KeptValues choose(llvm::function_ref<bool(int)> mayRepeat) {
    FlowNetwork network;
    llvm::DenseMap<int, int> vertexOf; // of clusters that may be repeated
    for (int cluster : stage.forward)
      if (mayRepeat(cluster))
        vertexOf[cluster] = network.addVertex();
    KeptValues kept;
    for (auto &[value, flowing] : values) {
      const int begin = network.addVertex(), end = network.addVertex();
      flowing.vertex = begin;
      network.addEdge(begin, end, flowing.isCheckpoint ? 0 : flowing.bytes);
      auto made = vertexOf.find(flowing.producer);
      network.addEdge(made == vertexOf.end() ? FlowNetwork::kSource
                                             : made->second,
                      begin, FlowNetwork::kUncut);
      if (flowing.isNeeded) {
        network.addEdge(end, FlowNetwork::kSink, FlowNetwork::kUncut);
        kept.allBytes += flowing.bytes;
      }
      for (int reader : flowing.readers)
        if (auto it = vertexOf.find(reader); it != vertexOf.end())
          network.addEdge(end, it->second, FlowNetwork::kUncut);
    }
    const std::vector<bool> isAfter = network.cut();
    // From what gradients read back to what is kept.
    std::vector<const Flowing *> left;
    for (const auto &[value, flowing] : values)
      if (flowing.isNeeded)
        left.push_back(&flowing);
    llvm::DenseMap<int, std::vector<const Flowing *>> readBy;
    for (const auto &[value, flowing] : values)
      for (int reader : flowing.readers)
        readBy[reader].push_back(&flowing);
    llvm::DenseSet<const Flowing *> seen(left.begin(), left.end());
    std::set<int> repeated;
    while (!left.empty()) {
      const Flowing *flowing = left.back();
      left.pop_back();
      if (!isAfter[flowing->vertex]) {
        kept.bytes += flowing->bytes;
        continue;
      }
      if (repeated.insert(flowing->producer).second)
        for (const Flowing *operand : readBy[flowing->producer])
          if (seen.insert(operand).second)
            left.push_back(operand);
    }
    kept.repeated.assign(repeated.begin(), repeated.end());
    return kept;
  }

private:
  void collect() {
    for (const ClusterValue &each : graph.values) {
      if (!isOfMicroBatch(each) || isBackward.contains(each.producer))
        continue;
      const Value stored = getStored(each.value);
      std::vector<int> readers;
      bool isNeeded = false;
      for (int consumer : each.consumers) {
        isNeeded |= isBackward.contains(consumer);
        if (isForward.contains(consumer))
          readers.push_back(consumer);
      }
      if (!isNeeded && readers.empty())
        continue;
      Flowing &flowing = values[stored];
      flowing.bytes = nn::getByteSize(stored.getType());
      if (auto made = graph.nodeOf.find(stored.getDefiningOp());
          made != graph.nodeOf.end() && isForward.contains(made->second))
        flowing.producer = made->second;
      flowing.isNeeded |= isNeeded;
      for (int reader : readers) {
        flowing.readers.push_back(reader);
        flowing.lastReader = std::max(flowing.lastReader, reader);
      }
    }
  }

  /// What a step has once is there at no cost, and what is gathered is gathered
  /// again.
  bool isOfMicroBatch(const ClusterValue &each) {
    return rates.getRate(each.value) == analysis::Rate::micro_batch &&
           !gathered.contains(each.value.getDefiningOp());
  }

  const PartitionGraph &graph;
  const StageClusters &stage;
  const llvm::DenseSet<int> isForward, isBackward;
  const llvm::DenseSet<Operation *> gathered;
  analysis::Rates rates;
  llvm::MapVector<Value, Flowing> values;
};

} // namespace

KeptValues chooseKeptValues(const PartitionGraph &graph,
                            const StageClusters &stage, bool whole, bool atOnce,
                            llvm::function_ref<bool(int)> mayRepeat) {
  Chooser chooser(graph, stage);
  if (!whole || !atOnce)
    return chooser.choose(mayRepeat);
  const int last = chooser.cutSegments();
  return chooser.choose(
      [&](int cluster) { return cluster < last && mayRepeat(cluster); });
}

} // namespace partita::pipeline

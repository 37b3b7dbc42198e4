//===- FlowNetwork.h - The smallest cut of a network ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_RECOMPUTE_FLOWNETWORK_H
#define PARTITA_COMPILER_PIPELINE_RECOMPUTE_FLOWNETWORK_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace partita::pipeline {

/// Vertices, and edges of which each costs something to cut. A cut separates
/// the source from the sink.
class FlowNetwork {
public:
  static constexpr int kSource = 0, kSink = 1;
  /// Of an edge that may not be cut.
  static constexpr int64_t kUncut = std::numeric_limits<int64_t>::max() / 4;

  FlowNetwork() : edgesOf(2) {}

  int addVertex();
  void addEdge(int from, int to, int64_t cost);

  /// The cheapest cut; of several, the one that is nearest to the sink. For
  /// each vertex, whether it is on the sink's side. Each path from the source
  /// to the sink must have an edge that may be cut.
  std::vector<bool> cut();

private:
  /// Each edge is followed by its reverse.
  struct Edge {
    int to;
    int64_t left; ///< of its cost
  };

  bool findLevels();
  int64_t push(int from, int64_t most);

  std::vector<Edge> edges;
  std::vector<std::vector<int>> edgesOf; ///< by vertex
  std::vector<int> levels;
  std::vector<size_t> next; ///< edge that is tried next, by vertex
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_RECOMPUTE_FLOWNETWORK_H

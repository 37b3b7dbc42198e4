//===- FlowNetwork.cpp - The smallest cut of a network --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dinic's algorithm: as much as possible flows along shortest paths, until no
// path is left. What cannot reach the sink any more is on the source's side.
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/recompute/FlowNetwork.h"

#include <algorithm>

namespace partita::pipeline {

int FlowNetwork::addVertex() {
  edgesOf.emplace_back();
  return static_cast<int>(edgesOf.size()) - 1;
}

void FlowNetwork::addEdge(int from, int to, int64_t cost) {
  edgesOf[from].push_back(static_cast<int>(edges.size()));
  edges.push_back({to, cost});
  edgesOf[to].push_back(static_cast<int>(edges.size()));
  edges.push_back({from, 0});
}

/// The number of edges from the source to each vertex; -1: there is no way.
bool FlowNetwork::findLevels() {
  levels.assign(edgesOf.size(), -1);
  levels[kSource] = 0;
  std::vector<int> queue = {kSource};
  for (size_t i = 0; i < queue.size(); ++i)
    for (int edge : edgesOf[queue[i]])
      if (const int to = edges[edge].to;
          edges[edge].left > 0 && levels[to] < 0) {
        levels[to] = levels[queue[i]] + 1;
        queue.push_back(to);
      }
  return levels[kSink] >= 0;
}

/// Lets at most `most` flow from a vertex to the sink.
int64_t FlowNetwork::push(int from, int64_t most) {
  // A path may be as long as the model: it is walked without recursion.
  std::vector<int> path; // edges
  int at = from;
  while (at != kSink) {
    bool goesOn = false;
    for (size_t &i = next[at]; i < edgesOf[at].size(); ++i) {
      const int edge = edgesOf[at][i];
      if (edges[edge].left > 0 && levels[edges[edge].to] == levels[at] + 1) {
        path.push_back(edge);
        at = edges[edge].to;
        goesOn = true;
        break;
      }
    }
    if (goesOn)
      continue;
    if (path.empty())
      return 0;
    at = edges[path.back() ^ 1].to;
    ++next[at];
    path.pop_back();
  }
  for (int edge : path)
    most = std::min(most, edges[edge].left);
  for (int edge : path) {
    edges[edge].left -= most;
    edges[edge ^ 1].left += most;
  }
  return most;
}

std::vector<bool> FlowNetwork::cut() {
  while (findLevels()) {
    next.assign(edgesOf.size(), 0);
    while (push(kSource, kUncut) > 0) {
    }
  }
  std::vector<bool> reaches(edgesOf.size(), false);
  reaches[kSink] = true;
  std::vector<int> queue = {kSink};
  for (size_t i = 0; i < queue.size(); ++i)
    for (int edge : edgesOf[queue[i]])
      if (const int from = edges[edge].to;
          edges[edge ^ 1].left > 0 && !reaches[from]) {
        reaches[from] = true;
        queue.push_back(from);
      }
  return reaches;
}

} // namespace partita::pipeline

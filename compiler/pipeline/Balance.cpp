//===- Balance.cpp - Cuts a chain of clusters into stages -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Balance.h"

#include <algorithm>
#include <limits>

namespace partita::pipeline {
namespace {

struct Price {
  double slowest = std::numeric_limits<double>::infinity();
  double transfers = std::numeric_limits<double>::infinity();

  bool operator<(const Price &other) const {
    return slowest != other.slowest ? slowest < other.slowest
                                    : transfers < other.transfers;
  }
};

// A gain below this part of the slowest stage is no gain: times are estimates.
constexpr double kLeastGain = 1e-3;
// Moves at a time: one branch for two of another, and one more.
constexpr int kMostMoves = 4;
// Moves that are tried at most; where few branches run side by side there are
// fewer.
constexpr int kMostTrials = 1000000;

/// What each cluster makes and reads, by index of the value; what the host
/// feeds is left out, since it feeds every stage alike.
struct Flow {
  std::vector<std::vector<int>> made, read;

  Flow(const std::vector<BalanceValue> &values, size_t clusters)
      : made(clusters), read(clusters) {
    for (int v = 0; v < static_cast<int>(values.size()); ++v) {
      if (values[v].producer < 0)
        continue;
      made[values[v].producer].push_back(v);
      for (int consumer : values[v].consumers)
        read[consumer].push_back(v);
    }
  }
};

/// Moves clusters between stages.
class Exchange {
public:
  Exchange(const std::vector<double> &clusterNs,
           const std::vector<BalanceValue> &values, const Flow &flow,
           std::vector<int> &stageOf, int stages, double unitNs)
      : clusterNs(clusterNs), values(values), flow(flow), stageOf(stageOf),
        load(stages, unitNs), members(stages, 0),
        readers(values.size(), std::vector<int>(stages, 0)) {
    for (size_t c = 0; c < stageOf.size(); ++c) {
      load[stageOf[c]] += clusterNs[c];
      ++members[stageOf[c]];
      for (int v : flow.read[c])
        ++readers[v][stageOf[c]];
    }
    for (size_t v = 0; v < values.size(); ++v)
      for (int stage = 0; stage < stages; ++stage)
        if (readers[v][stage] && stageOf[values[v].producer] != stage)
          arrive(v, stage, 1);
  }

  void run() {
    for (size_t moves = 0; moves < stageOf.size(); ++moves)
      if (!improve())
        return;
  }

private:
  Price getPrice() const {
    return {*std::max_element(load.begin(), load.end()), transfers};
  }

  void arrive(size_t value, int stage, int sign) {
    load[stage] += sign * values[value].transferNs;
    transfers += sign * values[value].transferNs;
  }

  bool mayMove(int cluster, int to) const {
    if (members[stageOf[cluster]] == 1)
      return false;
    for (int v : flow.read[cluster])
      if (stageOf[values[v].producer] > to)
        return false;
    for (int v : flow.made[cluster])
      for (int consumer : values[v].consumers)
        if (stageOf[consumer] < to)
          return false;
    return true;
  }

  void move(int cluster, int to) {
    int from = stageOf[cluster];
    for (int v : flow.read[cluster]) {
      int producer = stageOf[values[v].producer];
      if (--readers[v][from] == 0 && producer != from)
        arrive(v, from, -1);
      if (readers[v][to]++ == 0 && producer != to)
        arrive(v, to, 1);
    }
    for (int v : flow.made[cluster]) {
      if (readers[v][from])
        arrive(v, from, 1);
      if (readers[v][to])
        arrive(v, to, -1);
    }
    load[from] -= clusterNs[cluster];
    load[to] += clusterNs[cluster];
    --members[from];
    ++members[to];
    stageOf[cluster] = to;
    ++trials;
  }

  /// Makes the best few moves between the slowest stage and another one, as few
  /// as are a gain; false if none are.
  bool improve() {
    int slowest = std::max_element(load.begin(), load.end()) - load.begin();
    best.clear();
    least = getPrice();
    least.slowest *= 1 - kLeastGain;
    for (int depth = 1; depth <= kMostMoves && best.empty(); ++depth)
      for (int other = 0; other < static_cast<int>(load.size()); ++other)
        if (other != slowest)
          search(slowest, other, depth);
    for (auto [cluster, to] : best)
      move(cluster, to);
    return !best.empty();
  }

  void search(int one, int other, int depth) {
    for (int c = 0; c < static_cast<int>(stageOf.size()); ++c) {
      int from = stageOf[c], to = from == one ? other : one;
      if ((from != one && from != other) || trials > kMostTrials ||
          !mayMove(c, to))
        continue;
      move(c, to);
      path.emplace_back(c, to);
      if (depth > 1) {
        search(one, other, depth - 1);
      } else if (Price price = getPrice(); price < least) {
        least = price;
        best = path;
      }
      path.pop_back();
      move(c, from);
    }
  }

  const std::vector<double> &clusterNs;
  const std::vector<BalanceValue> &values;
  const Flow &flow;
  std::vector<int> &stageOf;
  std::vector<double> load;              ///< by stage
  std::vector<int> members;              ///< clusters, by stage
  std::vector<std::vector<int>> readers; ///< of a value, by stage
  double transfers = 0;
  Price least;
  std::vector<std::pair<int, int>> path, best; ///< clusters, and where they go
  int trials = 0;
};

} // namespace

std::vector<int> balanceStages(const std::vector<double> &clusterNs,
                               const std::vector<BalanceValue> &values,
                               int stages, double unitNs) {
  int clusters = static_cast<int>(clusterNs.size());
  stages = std::min(stages, clusters);
  if (stages <= 1)
    return std::vector<int>(clusters, 0);

  const Flow flow(values, clusters);
  std::vector<std::vector<Price>> best(stages + 1,
                                       std::vector<Price>(clusters + 1));
  std::vector<std::vector<int>> cut(stages + 1,
                                    std::vector<int>(clusters + 1, 0));
  best[0][0] = {0, 0};
  std::vector<int> arrivesFor(values.size(), -1);
  for (int j = 1; j <= clusters; ++j) {
    // Grow the last stage [i, j) towards the front.
    double work = unitNs, arriving = 0;
    for (int i = j - 1; i >= 0; --i) {
      work += clusterNs[i];
      for (int v : flow.read[i])
        if (arrivesFor[v] != j) {
          arrivesFor[v] = j;
          arriving += values[v].transferNs;
        }
      for (int v : flow.made[i])
        if (arrivesFor[v] == j) // made and read inside: nothing arrives
          arriving -= values[v].transferNs;
      for (int k = 1; k <= std::min(stages, i + 1); ++k) {
        Price price = best[k - 1][i];
        price.slowest = std::max(price.slowest, work + arriving);
        price.transfers += arriving;
        if (price < best[k][j]) {
          best[k][j] = price;
          cut[k][j] = i;
        }
      }
    }
  }

  std::vector<int> stageOf(clusters);
  for (int k = stages, j = clusters; k > 0; --k) {
    for (int i = cut[k][j]; i < j; ++i)
      stageOf[i] = k - 1;
    j = cut[k][j];
  }
  Exchange(clusterNs, values, flow, stageOf, stages, unitNs).run();
  return stageOf;
}

} // namespace partita::pipeline

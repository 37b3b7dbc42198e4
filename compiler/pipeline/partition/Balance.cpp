//===- Balance.cpp - Cuts a chain of clusters into stages -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/Balance.h"

#include <algorithm>
#include <limits>
#include <optional>

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

/// The kind of each stage.
using StageKinds = std::vector<const BalanceKind *>;

/// Moves clusters between stages.
class Exchange {
public:
  Exchange(const StageKinds &kinds, const std::vector<BalanceValue> &values,
           const Flow &flow, std::vector<int> &stageOf)
      : kinds(kinds), values(values), flow(flow), stageOf(stageOf),
        members(kinds.size(), 0),
        readers(values.size(), std::vector<int>(kinds.size(), 0)) {
    const int stages = static_cast<int>(kinds.size());
    for (const BalanceKind *kind : kinds)
      load.push_back(kind->unitNs);
    for (size_t c = 0; c < stageOf.size(); ++c) {
      load[stageOf[c]] += kinds[stageOf[c]]->clusterNs[c];
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
    const double ns = sign * kinds[stage]->transferNs[value];
    load[stage] += ns;
    transfers += ns;
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
    load[from] -= kinds[from]->clusterNs[cluster];
    load[to] += kinds[to]->clusterNs[cluster];
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

  const StageKinds &kinds;
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

/// Adds clusters to a stage and says what it needs.
class StageMemory {
public:
  StageMemory(const BalanceMemory &memory,
              const std::vector<BalanceValue> &values, const Flow &flow)
      : memory(memory), values(values), flow(flow),
        heldFor(memory.parameterBytes.size(), -1),
        lastsFor(memory.lasting.size(), -1) {}

  /// `number`: another one for each stage.
  void begin(int number) {
    stage = number;
    parameters = live = sent = 0;
    lasting.assign(memory.copies.size(), 0);
  }

  /// `leaves`: whether another stage reads a value.
  template <typename Leaves> void add(int cluster, Leaves leaves) {
    for (int p : memory.parameters[cluster])
      if (heldFor[p] != stage) {
        heldFor[p] = stage;
        parameters += memory.parameterBytes[p];
      }
    live = std::max(live, memory.liveBytes[cluster]);
    if (!memory.lastingOf.empty())
      for (int l : memory.lastingOf[cluster])
        if (lastsFor[l] != stage) {
          lastsFor[l] = stage;
          lasting[memory.lasting[l].span] += memory.lasting[l].bytes;
        }
    for (int v : flow.made[cluster])
      if (leaves(values[v]))
        sent += values[v].bytes;
  }

  /// At the place of a stage among all.
  int64_t getBytes(int place) const {
    int64_t bytes = parameters + live + sent;
    for (size_t span = 0; span < lasting.size(); ++span)
      bytes += memory.copies[span][place] * lasting[span];
    return bytes;
  }

  bool fits(int place) const {
    return memory.limit == 0 || getBytes(place) <= memory.limit;
  }

private:
  const BalanceMemory &memory;
  const std::vector<BalanceValue> &values;
  const Flow &flow;
  std::vector<int> heldFor;     ///< by parameter: the last stage with it
  std::vector<int> lastsFor;    ///< the same of what lasts
  std::vector<int64_t> lasting; ///< by span: bytes of one micro-batch
  int stage = 0;
  int64_t parameters = 0, live = 0, sent = 0;
};

/// The cut of the clusters into runs; empty if none keeps to the limit.
std::vector<int> cutIntoRuns(const StageKinds &kinds,
                             const std::vector<BalanceValue> &values,
                             const Flow &flow, const BalanceMemory *memory) {
  int stages = static_cast<int>(kinds.size());
  int clusters = static_cast<int>(flow.made.size());
  // What a run takes is worked out once for each kind.
  StageKinds all;
  std::vector<size_t> kindOf;
  for (const BalanceKind *kind : kinds) {
    auto found = std::find(all.begin(), all.end(), kind);
    kindOf.push_back(found - all.begin());
    if (found == all.end())
      all.push_back(kind);
  }
  std::optional<StageMemory> stageMemory;
  if (memory)
    stageMemory.emplace(*memory, values, flow);
  std::vector<std::vector<Price>> best(stages + 1,
                                       std::vector<Price>(clusters + 1));
  std::vector<std::vector<int>> cut(stages + 1,
                                    std::vector<int>(clusters + 1, -1));
  best[0][0] = {0, 0};
  std::vector<int> arrivesFor(values.size(), -1);
  for (int j = 1; j <= clusters; ++j) {
    // Grow the last stage [i, j) towards the front.
    std::vector<double> work, arriving(all.size(), 0);
    for (const BalanceKind *kind : all)
      work.push_back(kind->unitNs);
    auto arrive = [&](int value, int sign) {
      for (size_t kind = 0; kind < all.size(); ++kind)
        arriving[kind] += sign * all[kind]->transferNs[value];
    };
    if (stageMemory)
      stageMemory->begin(j);
    for (int i = j - 1; i >= 0; --i) {
      for (size_t kind = 0; kind < all.size(); ++kind)
        work[kind] += all[kind]->clusterNs[i];
      for (int v : flow.read[i])
        if (arrivesFor[v] != j) {
          arrivesFor[v] = j;
          arrive(v, 1);
        }
      for (int v : flow.made[i])
        if (arrivesFor[v] == j) // made and read inside: nothing arrives
          arrive(v, -1);
      if (stageMemory) {
        stageMemory->add(i, [&](const BalanceValue &value) {
          return !value.consumers.empty() && value.consumers.back() >= j;
        });
        bool fitsSomewhere = false;
        for (int k = 0; k < stages && !fitsSomewhere; ++k)
          fitsSomewhere = stageMemory->fits(k);
        if (!fitsSomewhere)
          break; // larger stages need no less
      }
      for (int k = 1; k <= std::min(stages, i + 1); ++k) {
        if (stageMemory && !stageMemory->fits(k - 1))
          continue;
        const size_t kind = kindOf[k - 1];
        const double price =
            memory && memory->limit == 0
                ? static_cast<double>(stageMemory->getBytes(k - 1))
                : work[kind] + arriving[kind];
        Price total = best[k - 1][i];
        total.slowest = std::max(total.slowest, price);
        total.transfers += arriving[kind];
        if (total < best[k][j]) {
          best[k][j] = total;
          cut[k][j] = i;
        }
      }
    }
  }
  if (cut[stages][clusters] < 0)
    return {};
  std::vector<int> stageOf(clusters);
  for (int k = stages, j = clusters; k > 0; --k) {
    for (int i = cut[k][j]; i < j; ++i)
      stageOf[i] = k - 1;
    j = cut[k][j];
  }
  return stageOf;
}

} // namespace

std::vector<int64_t> estimateMemory(const std::vector<BalanceValue> &values,
                                    const std::vector<int> &stageOf,
                                    const BalanceMemory &memory) {
  int stages = 0;
  for (int stage : stageOf)
    stages = std::max(stages, stage + 1);
  const Flow flow(values, stageOf.size());
  StageMemory stageMemory(memory, values, flow);
  std::vector<int64_t> bytes;
  for (int stage = 0; stage < stages; ++stage) {
    stageMemory.begin(stage);
    for (int c = 0; c < static_cast<int>(stageOf.size()); ++c)
      if (stageOf[c] == stage)
        stageMemory.add(c, [&](const BalanceValue &value) {
          return std::any_of(
              value.consumers.begin(), value.consumers.end(),
              [&](int consumer) { return stageOf[consumer] != stage; });
        });
    bytes.push_back(stageMemory.getBytes(stage));
  }
  return bytes;
}

std::vector<int> balanceStages(const std::vector<BalanceKind> &kinds,
                               const std::vector<int> &kindOf,
                               const std::vector<BalanceValue> &values,
                               const BalanceMemory *memory) {
  int clusters = static_cast<int>(kinds.front().clusterNs.size());
  int stages = std::min(static_cast<int>(kindOf.size()), clusters);
  if (stages <= 1)
    return std::vector<int>(clusters, 0);
  StageKinds stageKinds;
  for (int stage = 0; stage < stages; ++stage)
    stageKinds.push_back(&kinds[kindOf[stage]]);

  const Flow flow(values, clusters);
  std::vector<int> stageOf = cutIntoRuns(stageKinds, values, flow, memory);
  if (stageOf.empty()) {
    BalanceMemory least = *memory;
    least.limit = 0;
    return cutIntoRuns(stageKinds, values, flow, &least);
  }
  if (memory && memory->limit == 0)
    return stageOf;
  std::vector<int> exchanged = stageOf;
  Exchange(stageKinds, values, flow, exchanged).run();
  if (memory)
    for (int64_t bytes : estimateMemory(values, exchanged, *memory))
      if (bytes > memory->limit)
        return stageOf;
  return exchanged;
}

} // namespace partita::pipeline

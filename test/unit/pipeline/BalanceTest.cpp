//===- BalanceTest.cpp - Cuts against every possible cut ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/Balance.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace partita::pipeline;

namespace {

/// Stages of one kind, with the transfer times of the values.
std::vector<int> balanceStages(const std::vector<double> &clusterNs,
                               const std::vector<BalanceValue> &values,
                               int stages, double unitNs,
                               const BalanceMemory *memory = nullptr) {
  BalanceKind kind{clusterNs, {}, unitNs};
  for (const BalanceValue &value : values)
    kind.transferNs.push_back(value.transferNs);
  return balanceStages({std::move(kind)},
                       std::vector<int>(std::max(stages, 1), 0), values,
                       memory);
}

double slowest(const std::vector<double> &ns,
               const std::vector<BalanceValue> &values,
               const std::vector<int> &stageOf, double unitNs) {
  int stages = *std::max_element(stageOf.begin(), stageOf.end()) + 1;
  std::vector<double> time(stages, unitNs);
  for (size_t i = 0; i < ns.size(); ++i)
    time[stageOf[i]] += ns[i];
  for (const BalanceValue &value : values) {
    std::set<int> readers;
    for (int consumer : value.consumers)
      if (value.producer >= 0 && stageOf[consumer] != stageOf[value.producer])
        readers.insert(stageOf[consumer]);
    for (int reader : readers)
      time[reader] += value.transferNs;
  }
  return *std::max_element(time.begin(), time.end());
}

/// The best of all cuts of `count` clusters into `stages` runs.
double bestOfAll(const std::vector<double> &ns,
                 const std::vector<BalanceValue> &values, int stages,
                 double unitNs) {
  int count = ns.size();
  double best = 1e300;
  for (unsigned cuts = 0; cuts < (1u << (count - 1)); ++cuts) {
    std::vector<int> stageOf(count, 0);
    for (int i = 1; i < count; ++i)
      stageOf[i] = stageOf[i - 1] + ((cuts >> (i - 1)) & 1);
    if (stageOf.back() + 1 == stages)
      best = std::min(best, slowest(ns, values, stageOf, unitNs));
  }
  return best;
}

TEST(Balance, IsAtLeastAsGoodAsEveryCut) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    int count = 2 + random() % 9;
    std::vector<double> ns(count);
    for (double &time : ns)
      time = 1 + random() % 100;
    std::vector<BalanceValue> values;
    for (int producer = 0; producer + 1 < count; ++producer) {
      BalanceValue value{producer, {}, double(random() % 60)};
      for (int consumer = producer + 1; consumer < count; ++consumer)
        if (random() % 3 == 0)
          value.consumers.push_back(consumer);
      values.push_back(value);
    }
    int stages = 1 + random() % count;
    std::vector<int> stageOf = balanceStages(ns, values, stages, 5);
    EXPECT_EQ(std::set<int>(stageOf.begin(), stageOf.end()).size(),
              size_t(stages));
    for (const BalanceValue &value : values)
      for (int consumer : value.consumers)
        EXPECT_LE(stageOf[value.producer], stageOf[consumer]);
    EXPECT_LE(slowest(ns, values, stageOf, 5),
              bestOfAll(ns, values, stages, 5) + 1e-9);
  }
}

TEST(Balance, ExchangesBranches) {
  // The longer branch comes first in the order, the shorter one fits better.
  std::vector<BalanceValue> values = {{0, {1, 2}, 1}, {1, {3}, 1}, {2, {3}, 1}};
  EXPECT_EQ(balanceStages({100, 8, 4, 96}, values, 2, 0),
            (std::vector<int>{0, 1, 0, 1}));
}

TEST(Balance, ManyBranchesEndSoon) {
  constexpr int kBranches = 3000;
  std::vector<double> ns(kBranches + 1, 1);
  std::vector<BalanceValue> values = {{0, {}, 1}};
  for (int i = 1; i <= kBranches; ++i) {
    ns[i] = 1 + i % 17;
    values[0].consumers.push_back(i);
  }
  std::vector<int> stageOf = balanceStages(ns, values, 3, 0);
  double total = 0;
  for (double time : ns)
    total += time;
  EXPECT_LE(slowest(ns, values, stageOf, 0), total / 3 * 1.01);
}

TEST(Balance, NoMoreStagesThanClusters) {
  EXPECT_EQ(balanceStages({1, 1}, {}, 5, 0), (std::vector<int>{0, 1}));
  EXPECT_EQ(balanceStages({}, {}, 5, 0), std::vector<int>{});
}

TEST(Balance, CutsWhereLittleFlows) {
  std::vector<BalanceValue> values = {{0, {1}, 50}, {1, {2}, 1}, {2, {3}, 50}};
  EXPECT_EQ(balanceStages({10, 10, 10, 10}, values, 2, 0),
            (std::vector<int>{0, 0, 1, 1}));
}

/// Clusters with parameters that some of them share, in a random chain.
struct MemoryProblem {
  std::vector<double> ns;
  std::vector<BalanceValue> values;
  BalanceMemory memory;

  explicit MemoryProblem(std::mt19937 &random) {
    int count = 2 + random() % 8;
    for (int c = 0; c < count; ++c) {
      ns.push_back(1 + random() % 100);
      memory.parameterBytes.push_back(random() % 1000);
      memory.parameters.push_back({c});
      if (int shared = random() % (c + 1); shared != c)
        memory.parameters.back().push_back(shared);
      memory.liveBytes.push_back(random() % 200);
      // What each has made for later, and what it has of another one.
      memory.lasting.push_back({int64_t(random() % 100), int(random() % 2)});
      memory.lastingOf.push_back({c});
      if (int other = random() % (c + 1); other != c)
        memory.lastingOf.back().push_back(other);
      if (c + 1 < count)
        values.push_back({c, {c + 1}, double(random() % 20), 50});
    }
    // Early stages hold more micro-batches.
    for (int span : {0, 1})
      for (int stage = 0; stage < count; ++stage)
        memory.copies.resize(2), memory.copies[span].push_back(
                                     span == 0 ? count - stage : 1 + stage % 2);
  }

  int64_t largest(const std::vector<int> &stageOf) const {
    std::vector<int64_t> bytes = estimateMemory(values, stageOf, memory);
    return *std::max_element(bytes.begin(), bytes.end());
  }
};

TEST(Balance, KeepsToTheMemory) {
  std::mt19937 random(3);
  int tight = 0, none = 0;
  for (int trial = 0; trial < 300; ++trial) {
    MemoryProblem problem(random);
    int count = problem.ns.size(), stages = 2 + random() % (count - 1);
    problem.memory.limit = 200 + random() % 3000;
    double fastest = 1e300;
    int64_t least = INT64_MAX;
    for (unsigned cuts = 0; cuts < (1u << (count - 1)); ++cuts) {
      std::vector<int> stageOf(count, 0);
      for (int i = 1; i < count; ++i)
        stageOf[i] = stageOf[i - 1] + ((cuts >> (i - 1)) & 1);
      if (stageOf.back() + 1 != stages)
        continue;
      int64_t bytes = problem.largest(stageOf);
      least = std::min(least, bytes);
      if (bytes <= problem.memory.limit)
        fastest =
            std::min(fastest, slowest(problem.ns, problem.values, stageOf, 0));
    }
    std::vector<int> stageOf =
        balanceStages(problem.ns, problem.values, stages, 0, &problem.memory);
    if (fastest < 1e300) {
      EXPECT_LE(problem.largest(stageOf), problem.memory.limit);
      EXPECT_LE(slowest(problem.ns, problem.values, stageOf, 0),
                fastest + 1e-9);
      tight +=
          fastest >
          slowest(problem.ns, problem.values,
                  balanceStages(problem.ns, problem.values, stages, 0), 0) +
              1e-9;
    } else {
      EXPECT_EQ(problem.largest(stageOf), least) << "as little as can be";
      ++none;
    }
  }
  EXPECT_GT(tight, 10) << "the limit must matter";
  EXPECT_GT(none, 20);
}

TEST(Balance, KindsOfDevices) {
  // Six clusters in a chain. The first stage computes five times as fast.
  BalanceKind fast{std::vector<double>(6, 10), std::vector<double>(5, 1), 0},
      slow{std::vector<double>(6, 50), std::vector<double>(5, 1), 0};
  std::vector<BalanceValue> values;
  for (int i = 0; i < 5; ++i)
    values.push_back({i, {i + 1}, 0, 0});
  using Stages = std::vector<int>;
  EXPECT_EQ(balanceStages({fast, slow}, {0, 1}, values),
            (Stages{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(balanceStages({fast, slow}, {1, 0}, values),
            (Stages{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(balanceStages({fast, slow}, {0, 0}, values),
            (Stages{0, 0, 0, 1, 1, 1}));
  // What arrives at the second stage takes long, but for the fourth value.
  slow.transferNs = {90, 90, 90, 0, 90};
  EXPECT_EQ(balanceStages({fast, slow}, {0, 1}, values),
            (Stages{0, 0, 0, 0, 1, 1}));
}

TEST(Balance, ExchangesBetweenKinds) {
  // Two chains side by side, one cluster after the other: no run has three of
  // the dear ones alone, which the second stage computes as fast as the others.
  BalanceKind first{{10, 90, 10, 90, 10, 90}, std::vector<double>(4, 0), 0},
      second{std::vector<double>(6, 10), std::vector<double>(4, 0), 0};
  std::vector<BalanceValue> values = {
      {0, {2}, 0, 0}, {1, {3}, 0, 0}, {2, {4}, 0, 0}, {3, {5}, 0, 0}};
  EXPECT_EQ(balanceStages({first, second}, {0, 1}, values),
            (std::vector<int>{0, 1, 0, 1, 0, 1}));
}

} // namespace

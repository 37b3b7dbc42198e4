//===- RecomputeTest.cpp - As few bytes as possible are kept --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/recompute/FlowNetwork.h"
#include "compiler/pipeline/recompute/Segments.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace partita::pipeline;

namespace {

TEST(FlowNetwork, TheCutIsTheCheapest) {
  std::mt19937 random(3);
  auto below = [&](int bound) { return static_cast<int>(random() % bound); };
  for (int trial = 0; trial < 300; ++trial) {
    struct Edge {
      int from, to;
      int64_t cost;
    };
    const int inner = 1 + below(7);
    FlowNetwork network;
    for (int i = 0; i < inner; ++i)
      network.addVertex();
    std::vector<Edge> edges;
    for (int i = below(24); i-- > 0;)
      edges.push_back({below(inner + 2), below(inner + 2), below(9)});
    for (const Edge &edge : edges)
      network.addEdge(edge.from, edge.to, edge.cost);
    auto costOf = [&](auto isAfter) {
      int64_t cost = 0;
      for (const Edge &edge : edges)
        if (!isAfter(edge.from) && isAfter(edge.to))
          cost += edge.cost;
      return cost;
    };
    const std::vector<bool> found = network.cut();
    ASSERT_FALSE(found[FlowNetwork::kSource]);
    ASSERT_TRUE(found[FlowNetwork::kSink]);
    int64_t least = FlowNetwork::kUncut;
    int fewest = inner; // vertices after it
    for (int sides = 0; sides < 1 << inner; ++sides) {
      const int64_t cost = costOf([&](int vertex) {
        return vertex == FlowNetwork::kSink ||
               (vertex >= 2 && (sides >> (vertex - 2) & 1) != 0);
      });
      const int after = __builtin_popcount(sides);
      if (cost < least || (cost == least && after < fewest)) {
        least = cost;
        fewest = after;
      }
    }
    EXPECT_EQ(costOf([&](int vertex) { return bool(found[vertex]); }), least);
    EXPECT_EQ(std::count(found.begin(), found.end(), true), fewest + 1);
  }
}

TEST(FlowNetwork, LongChainsTakeNoStack) {
  FlowNetwork network;
  int last = FlowNetwork::kSource;
  for (int i = 0; i < 200'000; ++i) {
    const int vertex = network.addVertex();
    network.addEdge(last, vertex, i == 77 ? 1 : 2);
    last = vertex;
  }
  network.addEdge(last, FlowNetwork::kSink, FlowNetwork::kUncut);
  const std::vector<bool> after = network.cut();
  EXPECT_FALSE(after[2 + 76]);
  EXPECT_TRUE(after[2 + 77]);
}

/// What is kept, and what the largest segment needs.
int64_t countBytes(const std::vector<std::vector<MadeValue>> &made,
                   const std::vector<int> &segments) {
  int64_t kept = 0;
  std::vector<int64_t> needed(made.size(), 0);
  for (size_t i = 0; i < made.size(); ++i)
    for (const MadeValue &value : made[i])
      if (value.lastReader >= 0 && segments[value.lastReader] != segments[i])
        kept += value.bytes;
      else if (value.isNeeded)
        needed[segments[i]] += value.bytes;
  return kept + *std::max_element(needed.begin(), needed.end());
}

TEST(Segments, AChainIsCutAtItsRoot) {
  // 64 equal layers: 7 values are kept, and the 8 of one segment.
  std::vector<std::vector<MadeValue>> made;
  for (int i = 0; i < 64; ++i)
    made.push_back({{100, i + 1 < 64 ? i + 1 : -1, true}});
  const std::vector<int> segments = chooseSegments(made);
  EXPECT_TRUE(std::is_sorted(segments.begin(), segments.end()));
  EXPECT_EQ(segments.front(), 0);
  EXPECT_LE(segments.back(), 9);
  EXPECT_LE(countBytes(made, segments), 1600);
}

TEST(Segments, CutsAreWhereLittlePasses) {
  // Layers that are wide inside and narrow between.
  std::vector<std::vector<MadeValue>> made;
  for (int i = 0; i < 24; ++i)
    made.push_back({{i % 3 == 2 ? 10 : 1000, i + 1 < 24 ? i + 1 : -1, true}});
  const std::vector<int> segments = chooseSegments(made);
  for (int i = 1; i < 24; ++i)
    if (segments[i] != segments[i - 1])
      EXPECT_EQ(i % 3, 0) << i;
  EXPECT_EQ(segments.back(), 7);
}

TEST(Segments, AreNeverWorseThanNone) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 1 + static_cast<int>(random() % 30);
    std::vector<std::vector<MadeValue>> made(count);
    for (int i = 0; i < count; ++i)
      for (unsigned v = random() % 3; v-- > 0;)
        made[i].push_back(
            {static_cast<int64_t>(random() % 500),
             i + 1 < count && random() % 4 != 0
                 ? i + 1 + static_cast<int>(random() % (count - i - 1))
                 : -1,
             random() % 2 == 0});
    const std::vector<int> segments = chooseSegments(made);
    ASSERT_EQ(segments.size(), made.size());
    EXPECT_LE(countBytes(made, segments),
              countBytes(made, std::vector<int>(count, 0)));
  }
}

TEST(Segments, OfNothingAreNone) { EXPECT_TRUE(chooseSegments({}).empty()); }

} // namespace

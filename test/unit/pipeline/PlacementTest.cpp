//===- PlacementTest.cpp - No two live buffers share a byte ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/Placement.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace partita::pipeline;

namespace {

/// Whether two buffers are needed at the same time.
bool overlaps(const Buffer &a, const Buffer &b) {
  return a.exact.empty() || b.exact.empty() ? overlaps(a.live, b.live)
                                            : overlaps(a.exact, b.exact);
}

TEST(Placement, LiveRangesStaySortedAndDisjoint) {
  LiveRanges live;
  addLiveRange(live, {10, 12});
  addLiveRange(live, {2, 3});
  addLiveRange(live, {5, 6});
  addLiveRange(live, {3, 5});
  EXPECT_EQ(live, (LiveRanges{{2, 6}, {10, 12}}));
}

TEST(Placement, WhatOutlivesARunIsToldApartByRuns) {
  // Two that live in other runs of the same unit share their bytes; with what
  // lives within that unit neither of them does.
  std::vector<Buffer> buffers = {{64, {{0, 9}}, {{0, 9}, {20, 29}}},
                                 {64, {{0, 9}}, {{10, 19}, {30, 39}}},
                                 {64, {{5, 6}}, {}}};
  EXPECT_EQ(findConflicts(buffers),
            (std::vector<std::vector<size_t>>{{2}, {2}, {0, 1}}));
  EXPECT_EQ(placeBuffers(buffers).bytes, 128);
}

TEST(Placement, ConflictsAreThoseOfPairs) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Buffer> buffers(1 + random() % 40);
    for (Buffer &buffer : buffers) {
      auto add = [&](LiveRanges &ranges) {
        for (int i = 0; i < 3; ++i) {
          int64_t begin = random() % 200;
          addLiveRange(ranges, {begin, begin + int64_t(random() % 9)});
        }
      };
      add(buffer.live);
      if (random() % 2)
        add(buffer.exact);
    }
    std::vector<std::vector<size_t>> conflicts = findConflicts(buffers);
    for (size_t a = 0; a < buffers.size(); ++a)
      for (size_t b = 0; b < buffers.size(); ++b)
        EXPECT_EQ(std::count(conflicts[a].begin(), conflicts[a].end(), b),
                  a != b && overlaps(buffers[a], buffers[b]));
  }
}

TEST(Placement, RandomBuffersDoNotCollide) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Buffer> buffers(1 + random() % 60);
    int64_t sum = 0;
    for (Buffer &buffer : buffers) {
      buffer.bytes = random() % 3000;
      sum += (buffer.bytes + 63) / 64 * 64;
      for (int i = 0; i < 3; ++i) {
        int64_t begin = random() % 200;
        addLiveRange(buffer.live, {begin, begin + int64_t(random() % 9)});
      }
    }
    Placement placement = placeBuffers(buffers);
    EXPECT_LE(placement.bytes, sum);
    for (size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_EQ(placement.offsets[a] % 64, 0);
      EXPECT_LE(placement.offsets[a] + buffers[a].bytes, placement.bytes);
      for (size_t b = 0; b < a; ++b) {
        bool meet =
            placement.offsets[a] < placement.offsets[b] + buffers[b].bytes &&
            placement.offsets[b] < placement.offsets[a] + buffers[a].bytes;
        EXPECT_FALSE(meet && overlaps(buffers[a], buffers[b]));
      }
    }
  }
}

TEST(Placement, ChainNeedsTwoLargestNeighbours) {
  // Each value lives until the next is made.
  std::vector<Buffer> buffers = {{640, {{0, 1}}, {}},
                                 {1280, {{1, 2}}, {}},
                                 {640, {{2, 3}}, {}},
                                 {64, {{3, 4}}, {}}};
  EXPECT_EQ(placeBuffers(buffers).bytes, 1920);
}

TEST(Placement, SmallestGapThatHoldsIt) {
  std::vector<Buffer> buffers = {{1024, {{0, 9}}, {}}, {512, {{0, 0}}, {}},
                                 {512, {{0, 9}}, {}},  {256, {{0, 0}}, {}},
                                 {256, {{0, 9}}, {}},  {192, {{5, 5}}, {}}};
  Placement placement = placeBuffers(buffers);
  EXPECT_EQ(placement.offsets[5], placement.offsets[3]);
}

} // namespace

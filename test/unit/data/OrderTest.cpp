//===- OrderTest.cpp - Shuffles and draws ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/data/Support.h"

#include "runtime/data/Order.h"
#include "runtime/data/Philox.h"

#include <algorithm>
#include <map>
#include <set>

using namespace partita;
using namespace partita::data;
using namespace partita::data::testing;

namespace {

using Numbers = std::vector<int64_t>;

Numbers visited(Order::Kind kind, int64_t samples, uint64_t seed,
                int64_t epoch) {
  auto order = Order::create(kind, samples, seed);
  EXPECT_TRUE(order.ok()) << order.status().message();
  order->begin(epoch);
  Numbers numbers;
  for (int64_t i = 0; i < samples; ++i)
    numbers.push_back(order->at(i));
  return numbers;
}

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Numbers upTo(int64_t count) {
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(i);
  return numbers;
}

// The known answers of the authors' Random123 library (kat_vectors).
TEST(Philox, isTheAuthors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Order, isTheFiles) {
  EXPECT_EQ(visited(Order::Kind::inOrder, 4, 7, 3), upTo(4));
}

TEST(Order, shufflesEverySampleOnce) {
  for (int64_t samples : {0, 1, 2, 3, 10, 1000})
    for (int64_t epoch : {int64_t(0), int64_t(1), Order::kEpochs - 1})
      EXPECT_EQ(sorted(visited(Order::Kind::shuffled, samples, 5, epoch)),
                upTo(samples));
}

TEST(Order, dependsOnSeedAndEpochOnly) {
  const auto kShuffled = Order::Kind::shuffled;
  const Numbers first = visited(kShuffled, 100, 5, 0);
  EXPECT_EQ(first, visited(kShuffled, 100, 5, 0));
  EXPECT_NE(first, visited(kShuffled, 100, 6, 0));
  EXPECT_NE(first, visited(kShuffled, 100, 5 + (uint64_t(1) << 32), 0));
  EXPECT_NE(first, visited(kShuffled, 100, 5, 1));
  // Also when epochs were visited before, and not in order.
  auto order = Order::create(kShuffled, 100, 5);
  for (int64_t epoch : {4, 1, 9, 0})
    order->begin(epoch);
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_EQ(order->at(i), first[size_t(i)]);
}

// Whoever changes these numbers breaks every training that is to be resumed.
TEST(Order, staysAsItIs) {
  EXPECT_EQ(visited(Order::Kind::shuffled, 8, 1, 0),
            (Numbers{4, 2, 5, 6, 7, 1, 0, 3}));
  EXPECT_EQ(visited(Order::Kind::drawn, 8, 1, 0),
            (Numbers{0, 1, 7, 3, 5, 2, 6, 1}));
}

TEST(Order, shufflesWithoutBias) {
  // How often each of the 24 orders of four samples occurs in 24000 epochs:
  // chi-squared with 23 degrees of freedom is below 50 but once in 1000 times.
  std::map<Numbers, int> counts;
  for (int64_t epoch = 0; epoch < 24000; ++epoch)
    ++counts[visited(Order::Kind::shuffled, 4, 3, epoch)];
  EXPECT_EQ(counts.size(), 24u);
  double squares = 0;
  for (const auto &[numbers, times] : counts)
    squares += (times - 1000.0) * (times - 1000.0) / 1000;
  EXPECT_LT(squares, 50);
}

TEST(Order, drawsAnySampleAnywhere) {
  const Numbers drawn = visited(Order::Kind::drawn, 1000, 5, 2);
  EXPECT_EQ(drawn, visited(Order::Kind::drawn, 1000, 5, 2));
  EXPECT_NE(drawn, visited(Order::Kind::drawn, 1000, 5, 3));
  std::set<int64_t> different(drawn.begin(), drawn.end());
  EXPECT_GE(*different.begin(), 0);
  EXPECT_LT(*different.rbegin(), 1000);
  // About 1 - 1/e of them, since samples repeat.
  EXPECT_NEAR(double(different.size()), 632, 40);
  EXPECT_EQ(visited(Order::Kind::drawn, 1, 5, 2), (Numbers{0}));
}

TEST(Order, drawsFromMoreSamplesThanAShuffleMayHave) {
  const int64_t many = int64_t(1) << 40;
  auto order = Order::create(Order::Kind::drawn, many, 1);
  ASSERT_TRUE(order.ok()) << order.status().message();
  order->begin(0);
  int64_t most = 0;
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_GE(order->at(many - 1 - i), 0);
    most = std::max(most, order->at(many - 1 - i));
  }
  EXPECT_LT(most, many);
  EXPECT_GT(most, many / 2);
  expectError(Order::create(Order::Kind::shuffled, int64_t(1) << 32, 1),
              "draw them instead");
  expectError(Order::create(Order::Kind::inOrder, -1, 1), "no order of -1");
}

TEST(Order, stopsWhenAsked) {
  auto order = Order::create(Order::Kind::shuffled, 1 << 20, 1);
  ASSERT_TRUE(order.ok());
  std::atomic<bool> stop = true;
  order->begin(0, &stop);
  EXPECT_EQ(order->at(0), 0) << "the shuffle was carried out";
}

} // namespace

//===- PollBackoffTest.cpp - When the end of a step is seen ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/PollBackoff.h"

#include <gtest/gtest.h>

namespace partita::test {
namespace {

using runtime::cuda::PollBackoff;

/// A wait for work that takes `ns`, where a question takes a microsecond.
struct Wait {
  Wait(int64_t expected_ns, int64_t ns) {
    const PollBackoff backoff(expected_ns);
    int64_t at = 0;
    for (; at < ns; at += 1000) {
      const int64_t nap = backoff.pauseNs(at);
      asleep += nap;
      at += nap;
    }
    late = at - ns;
  }
  int64_t late = 0, asleep = 0;
};

constexpr int64_t kMicro = 1000, kMilli = 1000 * kMicro;

TEST(PollBackoff, WhatTakesAsLongAsBeforeIsSeenAtOnce) {
  for (int64_t ns : {20 * kMicro, 90 * kMicro, 700 * kMicro, 3 * kMilli,
                     40 * kMilli, 2000 * kMilli})
    for (int64_t percent : {95, 99, 100, 101, 105}) {
      const int64_t takes = ns / 100 * percent;
      if (std::abs(takes - ns) <= 500 * kMicro)
        EXPECT_LE(Wait(ns, takes).late, kMicro) << ns << ", " << percent;
    }
}

TEST(PollBackoff, WhatTakesLongerIsSeenSoon) {
  for (int64_t expected : {int64_t(0), 300 * kMicro, 10 * kMilli})
    for (int64_t more : {100 * kMicro, 600 * kMicro, 3 * kMilli, 90 * kMilli}) {
      const Wait wait(expected, expected + more);
      EXPECT_LE(wait.late,
                std::min(std::max(more / 64, 5 * kMicro), 50 * kMicro) + kMicro)
          << expected << ", " << more;
    }
}

TEST(PollBackoff, WhatTakesLessIsSeenWithinANap) {
  EXPECT_LE(Wait(10 * kMilli, 4 * kMilli).late, 51 * kMicro);
}

TEST(PollBackoff, ALongWaitLeavesTheCoreToOthers) {
  for (int64_t expected : {int64_t(0), 100 * kMilli, 30 * kMilli}) {
    const Wait wait(expected, 100 * kMilli);
    EXPECT_GE(wait.asleep, 95 * kMilli) << expected;
  }
}

} // namespace
} // namespace partita::test

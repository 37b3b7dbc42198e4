//===- PollBackoff.h - How often a GPU is asked -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host asks a GPU until work is done. Asking without a pause takes a core;
// a pause makes the answer late. Steps take about as long as those before them.
// So the host sleeps until shortly before that time, and then asks every few
// microseconds.
//
//   PollBackoff backoff(last_ns);
//   while (!done())
//     backoff.pause(nanoseconds_since_the_begin);
//   last_ns = nanoseconds_since_the_begin;
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_POLLBACKOFF_H
#define PARTITA_RUNTIME_DEVICE_CUDA_POLLBACKOFF_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <sys/prctl.h>
#include <thread>

namespace partita::runtime::cuda {

class PollBackoff {
public:
  /// `expected_ns`: how long such work took before; 0: nobody knows.
  explicit PollBackoff(int64_t expected_ns = 0)
      : expected(expected_ns),
        margin(std::clamp(expected_ns / 10, kLeastMargin, kMostMargin)) {}

  /// Nanoseconds to sleep after a wait of `waited_ns`; 0: ask again soon.
  int64_t pauseNs(int64_t waited_ns) const {
    if (waited_ns < kShort || std::abs(waited_ns - expected) <= margin)
      return 0;
    if (waited_ns < expected)
      return std::min(kMostNap, expected - margin - waited_ns);
    // Late by a small part of what was waited, and at first by little.
    return std::clamp((waited_ns - expected) / 64, kLeastNap, kMostNap);
  }

  void pause(int64_t waited_ns) {
    const int64_t nap = pauseNs(waited_ns);
    if (nap == 0)
      return rest();
    if (!timer)
      timer.emplace();
    std::this_thread::sleep_for(std::chrono::nanoseconds(nap));
  }

private:
  static constexpr int64_t kShort = 300'000;
  static constexpr int64_t kLeastMargin = 50'000, kMostMargin = 500'000;
  static constexpr int64_t kLeastNap = 5'000, kMostNap = 50'000;
  static constexpr std::chrono::nanoseconds kRest{1'000};

  /// Who gives the GPU work wants the driver, too, which has locks.
  static void rest() {
    const auto end = std::chrono::steady_clock::now() + kRest;
    do
      std::this_thread::yield();
    while (std::chrono::steady_clock::now() < end);
  }

  /// Lets the calling thread wake up when it asked to. Linux otherwise takes 50
  /// microseconds more.
  class FineTimer {
  public:
    FineTimer() : slack(::prctl(PR_GET_TIMERSLACK)) {
      (void)::prctl(PR_SET_TIMERSLACK, 1);
    }
    ~FineTimer() {
      if (slack > 0)
        (void)::prctl(PR_SET_TIMERSLACK, slack);
    }
    FineTimer(const FineTimer &) = delete;
    FineTimer &operator=(const FineTimer &) = delete;

  private:
    const int slack;
  };

  const int64_t expected, margin;
  std::optional<FineTimer> timer;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_POLLBACKOFF_H

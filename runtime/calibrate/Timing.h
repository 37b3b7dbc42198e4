//===- Timing.h - Least time of a piece of work -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CALIBRATE_TIMING_H
#define PARTITA_RUNTIME_CALIBRATE_TIMING_H

#include <algorithm>
#include <cmath>
#include <ctime>

namespace partita::runtime {

inline double readClock(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

inline double nowNs() { return readClock(CLOCK_MONOTONIC); }

/// Runs `work` for about `budget` nanoseconds, at least four times after two
/// runs that do not count. Returns the least time of a run by `clock`. Runs
/// that are too short for the clock are timed several at once. In a virtual
/// machine a thread's clock can stand still while the host takes the processor
/// away. So a run counts only if its clock advanced nearly as fast as real
/// time. If there is no such run, this returns the least real time of a run.
template <typename Work>
double leastTime(const Work &work, double budget,
                 clockid_t clock = CLOCK_MONOTONIC) {
  constexpr double kShortest = 15000, kUndisturbed = .9, kNever = 1e300;
  work();
  double begin = nowNs();
  work();
  double once = std::max(nowNs() - begin, 1.0);
  int together = int(std::clamp(std::ceil(kShortest / once), 1.0, 1e5));
  double least = kNever, shortest = kNever, end = nowNs() + budget;
  for (int sample = 0; sample < 4 || nowNs() < end; ++sample) {
    const double before = nowNs();
    begin = readClock(clock);
    for (int i = 0; i < together; ++i)
      work();
    const double took = readClock(clock) - begin, passed = nowNs() - before;
    shortest = std::min(shortest, passed);
    if (took >= kUndisturbed * passed)
      least = std::min(least, took);
  }
  return (least < kNever ? least : shortest) / together;
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_TIMING_H

//===- Timing.h - Least time of a piece of work -----------===//
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
/// runs that do not count; returns the least time of one by `clock`. Work that
/// is over too soon for a clock is timed several runs at once.
template <typename Work>
double leastTime(const Work &work, double budget,
                 clockid_t clock = CLOCK_MONOTONIC) {
  constexpr double kShortest = 15000;
  work();
  double begin = nowNs();
  work();
  double once = std::max(nowNs() - begin, 1.0);
  int together = int(std::clamp(std::ceil(kShortest / once), 1.0, 1e5));
  double least = 1e300, end = nowNs() + budget;
  for (int sample = 0; sample < 4 || nowNs() < end; ++sample) {
    begin = readClock(clock);
    for (int i = 0; i < together; ++i)
      work();
    least = std::min(least, (readClock(clock) - begin) / together);
  }
  return least;
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_TIMING_H

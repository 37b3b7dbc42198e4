//===- Segments.cpp - Where to keep values of a long computation ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/recompute/Segments.h"

#include <algorithm>
#include <limits>

namespace partita::pipeline {
namespace {

/// Cuts for one limit of what a segment may need.
struct Cuts {
  int64_t bytes = std::numeric_limits<int64_t>::max(); ///< kept, and needed
  std::vector<int> begins; ///< by end of a segment: its begin
};

Cuts cutWithin(const std::vector<std::vector<MadeValue>> &made, int64_t limit) {
  const int count = static_cast<int>(made.size());
  std::vector<int64_t> best(count + 1, std::numeric_limits<int64_t>::max()),
      largest(count + 1, 0);
  Cuts cuts;
  cuts.begins.assign(count + 1, 0);
  best[0] = 0;
  for (int end = 1; end <= count; ++end) {
    int64_t kept = 0, needed = 0;
    for (int begin = end - 1; begin >= 0; --begin) {
      for (const MadeValue &value : made[begin])
        if (value.lastReader >= end)
          kept += value.bytes;
        else if (value.isNeeded)
          needed += value.bytes;
      // What one piece of work makes cannot be cut.
      if (needed > limit && begin + 1 < end)
        break;
      if (best[begin] + kept < best[end]) {
        best[end] = best[begin] + kept;
        largest[end] = std::max(largest[begin], needed);
        cuts.begins[end] = begin;
      }
    }
  }
  cuts.bytes = best[count] + largest[count];
  return cuts;
}

} // namespace

std::vector<int>
chooseSegments(const std::vector<std::vector<MadeValue>> &made) {
  int64_t all = 0;
  for (const std::vector<MadeValue> &values : made)
    for (const MadeValue &value : values)
      all += value.isNeeded ? value.bytes : 0;
  Cuts best;
  for (int parts : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64})
    if (Cuts cuts = cutWithin(made, all / parts); cuts.bytes < best.bytes)
      best = std::move(cuts);
  std::vector<int> segments(made.size(), 0);
  int before = 0; // segments after the one that is numbered
  for (int end = static_cast<int>(made.size()); end > 0;
       end = best.begins[end], ++before)
    std::fill(segments.begin() + best.begins[end], segments.begin() + end,
              -before);
  for (int &segment : segments)
    segment += before - 1;
  return segments;
}

} // namespace partita::pipeline

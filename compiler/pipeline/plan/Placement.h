//===- Placement.h - Offsets in an arena ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_PLACEMENT_H
#define PARTITA_COMPILER_PIPELINE_PLAN_PLACEMENT_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace partita::pipeline {

/// Where a value of an arena may begin: at multiples of so many bytes.
inline constexpr int64_t kAlignment = 64;

/// An interval of time in which bytes are needed, both ends included.
struct LiveRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const LiveRange &) const = default;
};

/// Sorted and disjoint.
using LiveRanges = std::vector<LiveRange>;

/// Adds a range, keeping them sorted and disjoint.
void addLiveRange(LiveRanges &ranges, LiveRange range);

/// Whether two lists have a time in common.
bool overlaps(const LiveRanges &a, const LiveRanges &b);

/// Bytes that must keep their place during all of `live`.
///
/// A buffer that lives within a unit lives in every run of the unit, at the
/// same instructions. So there are two time axes. The folded axis contains each
/// unit once; `live` has every buffer's times on it. The exact axis is that of
/// the whole program; `exact` has the times of buffers that outlive a run of a
/// unit. Two such buffers may live in different runs of the same unit, and only
/// the exact axis distinguishes those.
struct Buffer {
  int64_t bytes = 0;
  LiveRanges live;
  LiveRanges exact; ///< empty: it lives within its unit
};

/// For each buffer: those that are needed at the same time. Takes time
/// proportional to their number, except for pairs of buffers that outlive a
/// run.
std::vector<std::vector<size_t>>
findConflicts(const std::vector<Buffer> &buffers);

struct Placement {
  std::vector<int64_t> offsets; ///< multiples of kAlignment, one per buffer
  int64_t bytes = 0;            ///< peak: the end of the last buffer
};

/// Places buffers greedily by size, the largest first. Each goes into the
/// smallest gap that holds it between the buffers that are needed at the same
/// time (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
/// Inference", 2020). Buffers of 0 bytes have the offset 0.
Placement placeBuffers(const std::vector<Buffer> &buffers);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_PLACEMENT_H

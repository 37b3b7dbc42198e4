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

/// Times during which bytes are needed, both ends included.
struct LiveRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const LiveRange &) const = default;
};

/// Sorted and disjoint.
using LiveRanges = std::vector<LiveRange>;

/// Adds a range, keeping them sorted and disjoint.
void addLiveRange(LiveRanges &ranges, LiveRange range);

/// Whether two have a time in common.
bool overlaps(const LiveRanges &a, const LiveRanges &b);

/// Bytes that must keep their place during all of `live`.
///
/// What lives within a unit lives in every run of it, at the same instructions.
/// So there are two axes of time. On the folded one each unit stands once, and
/// every buffer has its times there in `live`. Those that outlive a run have
/// their times on the axis of the whole program as well, in `exact`: two of
/// them may live in different runs of the same unit, which only that axis
/// tells apart.
struct Buffer {
  int64_t bytes = 0;
  LiveRanges live;
  LiveRanges exact; ///< empty: it lives within its unit
};

/// Whether two buffers are needed at the same time.
bool overlaps(const Buffer &a, const Buffer &b);

/// By buffer: those that are needed at the same time. In time proportional to
/// their number, but for pairs of buffers that outlive a run.
std::vector<std::vector<size_t>>
findConflicts(const std::vector<Buffer> &buffers);

struct Placement {
  std::vector<int64_t> offsets; ///< multiples of `alignment`, one a buffer
  int64_t bytes = 0;            ///< peak: the end of the last buffer
};

/// Greedy by size: the largest first, each into the smallest gap that holds it
/// between the buffers that are needed at the same time (Pisarchyk and Lee,
/// "Efficient Memory Management for Deep Neural Net Inference", 2020). Buffers
/// of 0 bytes lie at 0.
Placement placeBuffers(const std::vector<Buffer> &buffers,
                       int64_t alignment = 64);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_PLACEMENT_H

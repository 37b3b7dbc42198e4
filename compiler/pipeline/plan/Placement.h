//===- Placement.h - Offsets in an arena ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_PLACEMENT_H
#define PARTITA_COMPILER_PIPELINE_PLAN_PLACEMENT_H

#include <cstdint>
#include <vector>

namespace partita::pipeline {

/// Times during which bytes are needed, both ends included. Times are those of
/// one device's total order of instructions.
struct LiveRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// Bytes that must keep their place during all of `live` (sorted, disjoint).
struct Buffer {
  int64_t bytes = 0;
  std::vector<LiveRange> live;
};

/// Whether two buffers are needed at the same time.
bool overlaps(const Buffer &a, const Buffer &b);

/// Adds a range, keeping them sorted and disjoint.
void addLiveRange(Buffer &buffer, LiveRange range);

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

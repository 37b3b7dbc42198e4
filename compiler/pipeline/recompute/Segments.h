//===- Segments.h - Where to keep values of a long computation --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What forward computes is cut into segments. What enters a segment is kept;
// the rest of what gradients need of it is computed again just before them, one
// segment at a time.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_RECOMPUTE_SEGMENTS_H
#define PARTITA_COMPILER_PIPELINE_RECOMPUTE_SEGMENTS_H

#include <cstdint>
#include <vector>

namespace partita::pipeline {

/// A value that a piece of work makes.
struct MadeValue {
  int64_t bytes = 0;
  int lastReader = -1;   ///< the last piece of forward work that reads it
  bool isNeeded = false; ///< gradients read it
};

/// The segment of each piece of work, such that what is kept and what the
/// largest segment needs are together as few bytes as possible. `made`: by
/// piece of work, in the order in which they are computed.
std::vector<int>
chooseSegments(const std::vector<std::vector<MadeValue>> &made);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_RECOMPUTE_SEGMENTS_H

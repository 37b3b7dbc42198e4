//===- Placement.cpp - Offsets in an arena --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/Placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace partita::pipeline {

bool overlaps(const Buffer &a, const Buffer &b) {
  auto x = a.live.begin(), y = b.live.begin();
  while (x != a.live.end() && y != b.live.end()) {
    if (x->end < y->begin)
      ++x;
    else if (y->end < x->begin)
      ++y;
    else
      return true;
  }
  return false;
}

void addLiveRange(Buffer &buffer, LiveRange range) {
  auto it = std::lower_bound(
      buffer.live.begin(), buffer.live.end(), range.begin,
      [](const LiveRange &live, int64_t begin) { return live.end < begin; });
  while (it != buffer.live.end() && it->begin <= range.end) {
    range.begin = std::min(range.begin, it->begin);
    range.end = std::max(range.end, it->end);
    it = buffer.live.erase(it);
  }
  buffer.live.insert(it, range);
}

Placement placeBuffers(const std::vector<Buffer> &buffers, int64_t alignment) {
  auto align = [&](int64_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  };
  std::vector<size_t> bySize(buffers.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  std::stable_sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });

  Placement placement;
  placement.offsets.assign(buffers.size(), 0);
  std::vector<size_t> byOffset; // placed ones
  for (size_t index : bySize) {
    int64_t bytes = align(buffers[index].bytes);
    if (bytes == 0)
      continue;
    int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), free = 0;
    for (size_t other : byOffset) {
      if (!overlaps(buffers[index], buffers[other]))
        continue;
      int64_t gap = placement.offsets[other] - free;
      if (gap >= bytes && gap < bestGap) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free,
                      placement.offsets[other] + align(buffers[other].bytes));
    }
    int64_t offset = best >= 0 ? best : free;
    placement.offsets[index] = offset;
    placement.bytes = std::max(placement.bytes, offset + buffers[index].bytes);
    byOffset.insert(std::upper_bound(byOffset.begin(), byOffset.end(), index,
                                     [&](size_t a, size_t b) {
                                       return placement.offsets[a] <
                                              placement.offsets[b];
                                     }),
                    index);
  }
  return placement;
}

} // namespace partita::pipeline

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

bool overlaps(const LiveRanges &a, const LiveRanges &b) {
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (x->end < y->begin)
      ++x;
    else if (y->end < x->begin)
      ++y;
    else
      return true;
  }
  return false;
}

void addLiveRange(LiveRanges &ranges, LiveRange range) {
  auto it = std::lower_bound(
      ranges.begin(), ranges.end(), range.begin,
      [](const LiveRange &live, int64_t begin) { return live.end < begin; });
  auto last = it;
  for (; last != ranges.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  if (it == last) {
    ranges.insert(it, range);
    return;
  }
  *it = range;
  ranges.erase(it + 1, last);
}

std::vector<std::vector<size_t>>
findConflicts(const std::vector<Buffer> &buffers) {
  std::vector<std::vector<size_t>> conflicts(buffers.size());
  auto add = [&](size_t a, size_t b) {
    conflicts[a].push_back(b);
    conflicts[b].push_back(a);
  };
  // Where one of the two lives within its unit: along the folded axis.
  struct Begin {
    int64_t time, end;
    size_t buffer;
  };
  std::vector<Begin> begins;
  std::vector<size_t> lasting;
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (const LiveRange &range : buffers[i].live)
      begins.push_back({range.begin, range.end, i});
    if (!buffers[i].exact.empty())
      lasting.push_back(i);
  }
  std::sort(begins.begin(), begins.end(), [](const Begin &a, const Begin &b) {
    return a.time != b.time ? a.time < b.time : a.buffer < b.buffer;
  });
  std::vector<Begin> alive;
  for (const Begin &begin : begins) {
    std::erase_if(alive,
                  [&](const Begin &other) { return other.end < begin.time; });
    for (const Begin &other : alive)
      if (buffers[begin.buffer].exact.empty() ||
          buffers[other.buffer].exact.empty())
        add(begin.buffer, other.buffer);
    alive.push_back(begin);
  }
  // Two may meet several times.
  std::vector<size_t> counts;
  for (std::vector<size_t> &list : conflicts) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    counts.push_back(list.size());
  }
  // Others than those before, and they are many: they come in order.
  for (size_t i = 0; i < lasting.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (overlaps(buffers[lasting[i]].exact, buffers[lasting[k]].exact))
        add(lasting[i], lasting[k]);
  for (size_t i = 0; i < buffers.size(); ++i)
    std::inplace_merge(conflicts[i].begin(),
                       conflicts[i].begin() + static_cast<int64_t>(counts[i]),
                       conflicts[i].end());
  return conflicts;
}

Placement placeBuffers(const std::vector<Buffer> &buffers) {
  auto align = [](int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::vector<size_t> bySize(buffers.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  std::stable_sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes > buffers[b].bytes;
  });

  const std::vector<std::vector<size_t>> conflicts = findConflicts(buffers);
  Placement placement;
  placement.offsets.assign(buffers.size(), 0);
  std::vector<bool> isPlaced(buffers.size());
  std::vector<size_t> others; // placed ones, by offset
  for (size_t index : bySize) {
    int64_t bytes = align(buffers[index].bytes);
    if (bytes == 0)
      continue;
    others.clear();
    for (size_t other : conflicts[index])
      if (isPlaced[other])
        others.push_back(other);
    std::sort(others.begin(), others.end(), [&](size_t a, size_t b) {
      return placement.offsets[a] < placement.offsets[b];
    });
    int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), free = 0;
    for (size_t other : others) {
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
    isPlaced[index] = true;
  }
  return placement;
}

} // namespace partita::pipeline

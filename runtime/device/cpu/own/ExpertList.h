//===- ExpertList.h - Rows in the order of their experts --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_EXPERTLIST_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_EXPERTLIST_H

#include "runtime/device/cpu/onednn/ThreadTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>

namespace partita::runtime {

/// Which rows chose which expert. It lies in the scratch of a task.
class ExpertList {
public:
  /// `count` rows that chose the same expert: `order()[first]` and those behind
  /// it.
  struct Group {
    int32_t expert, first, count;
  };

  /// A group has at most `most` rows.
  ExpertList(const rules::ExpertDotShape &shape, int64_t most)
      : rows(shape.rows), experts(shape.experts), most(most),
        room(static_cast<size_t>(rules::expertListRoom(shape))) {}

  /// Bytes of the list, a multiple of 64.
  size_t bytes() const { return room; }
  void place(uint8_t *data) {
    groups = reinterpret_cast<Group *>(data);
    sorted = reinterpret_cast<int32_t *>(groups + rows);
    ends = sorted + rows;
  }

  bool isHere(int64_t expert) const { return expert >= 0 && expert < experts; }

  /// Sorts the rows by their experts, [rows]. A row whose index is none of them
  /// is left out.
  void fill(const int64_t *chosen) {
    std::fill_n(ends, experts + 1, 0);
    for (int64_t row = 0; row < rows; ++row)
      if (isHere(chosen[row]))
        ++ends[chosen[row] + 1];
    groupCount = 0;
    for (int64_t e = 0; e < experts; ++e) {
      const int32_t count = ends[e + 1];
      ends[e + 1] += ends[e];
      for (int32_t done = 0; done < count;) {
        const auto next =
            static_cast<int32_t>(std::min<int64_t>(count - done, most));
        groups[groupCount++] = {static_cast<int32_t>(e), ends[e] + done, next};
        done += next;
      }
    }
    for (int64_t row = 0; row < rows; ++row)
      if (isHere(chosen[row]))
        sorted[ends[chosen[row]]++] = static_cast<int32_t>(row);
  }

  /// The groups in the order of their experts.
  int64_t size() const { return groupCount; }
  const Group &operator[](int64_t i) const { return groups[i]; }
  const int32_t *order() const { return sorted; }
  /// The rows of an expert, as a range of `order`.
  int32_t begin(int64_t expert) const { return expert ? ends[expert - 1] : 0; }
  int32_t end(int64_t expert) const { return ends[expert]; }

private:
  const int64_t rows, experts, most;
  const size_t room;
  Group *groups = nullptr;
  int32_t *sorted = nullptr;
  int32_t *ends = nullptr; ///< by expert; while it is filled, begins
  int64_t groupCount = 0;
};

/// A call whose threads work on rows by their experts. The list lies before the
/// threads' scratch.
class ExpertTask : public ThreadProductTask {
public:
  size_t scratchBytes() const override {
    return list.bytes() + ThreadProductTask::scratchBytes();
  }
  void useScratch(uint8_t *data) override {
    list.place(data);
    ThreadProductTask::useScratch(data + list.bytes());
  }

protected:
  ExpertTask(ResolvedCall call, const ThreadTeam &team,
             const rules::ExpertDotShape &shape,
             const rules::PackedDotTiles &tiles)
      : ThreadProductTask(std::move(call), team), shape(shape), tiles(tiles),
        list(shape, tiles.rows) {}

  static size_t floatBytes(int64_t count) {
    return static_cast<size_t>(count) * sizeof(float);
  }

  const rules::ExpertDotShape shape;
  const rules::PackedDotTiles tiles;
  ExpertList list;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_EXPERTLIST_H

//===- Group.h - A device's part of a collective ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_REDUCE_GROUP_H
#define PARTITA_RUNTIME_COMM_REDUCE_GROUP_H

#include "runtime/base/Status.h"
#include "runtime/comm/Collective.h"
#include "runtime/comm/reduce/CombineRows.h"

#include <cstddef>
#include <string>
#include <utility>

namespace partita::runtime {

/// The function for this processor; null if elements of this type have no such
/// reduction.
CombineFunction combineFunction(abi::DType dtype, Reduction reduction);

/// Whether collectives of this kind combine elements.
bool combines(CollectiveKind kind);

/// Fails if a collective cannot be carried out: if a size is negative or too
/// large, its elements cannot be combined, or a device is in two groups or
/// below 0.
Status checkCollective(const CollectiveInfo &info);

/// The group of a device, and its place there.
struct Membership {
  const std::vector<int> *group = nullptr; ///< null: in none
  int rank = 0;                            ///< in the group
  int size() const { return group ? int(group->size()) : 0; }
};
Membership membership(const CollectiveInfo &info, int device);

/// Bytes of `part` elements, and of `part` elements of all rows.
int64_t partBytes(const CollectiveInfo &info);
int64_t rowBytes(const CollectiveInfo &info);
/// Bytes of a source in a group of `size` devices.
int64_t sourceBytes(const CollectiveInfo &info, int size);

/// In an all_reduce each device combines a share of the `rows * part` elements.
/// Returns the begin and the end of the share of device `rank` of `size`, in
/// bytes. Shares end at cache lines.
std::pair<int64_t, int64_t> shareOf(const CollectiveInfo &info, int rank,
                                    int size);

/// Copies `rows` rows of `bytes` bytes; strides in bytes.
void copyRows(int64_t rows, size_t bytes, const uint8_t *from,
              int64_t from_stride, uint8_t *to, int64_t to_stride);

/// "device 1", "devices 1, 3"
std::string listDevices(const std::vector<int> &devices);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_REDUCE_GROUP_H

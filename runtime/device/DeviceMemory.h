//===- DeviceMemory.h - Bytes that a device holds ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_DEVICEMEMORY_H
#define PARTITA_RUNTIME_DEVICE_DEVICEMEMORY_H

#include <cstdint>

namespace partita::runtime {

/// Memory a device holds, in bytes.
struct DeviceMemory {
  int64_t planned = 0; ///< the sum of the planned sizes of what follows
  int64_t arena = 0;   ///< planned and allocated
  /// Measured: bytes up to the highest that a step wrote (see SessionOptions).
  int64_t arena_touched = 0;
  int64_t parameters = 0; ///< weights and constants in their plain layout
  int64_t packed = 0;     ///< weights in the library's own layout
  int64_t workspace = 0;  ///< the library's scratch
  /// Beside the plan: bytes on their way between a GPU and the host.
  int64_t staging = 0;

  /// The part of `planned` that a run uses.
  int64_t used() const {
    return (arena_touched ? arena_touched : arena) + parameters + packed +
           workspace;
  }
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_DEVICEMEMORY_H

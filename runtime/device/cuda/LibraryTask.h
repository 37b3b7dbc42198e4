//===- LibraryTask.h - A library call that is ready -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYTASK_H
#define PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYTASK_H

#include "runtime/base/Status.h"
#include "runtime/device/cuda/driver/Types.h"

namespace partita::runtime::cuda {

/// Everything is chosen, and has its memory. Only where the operands lie
/// changes from one micro-batch to another.
class LibraryTask {
public:
  virtual ~LibraryTask() = default;

  /// Prepares a place of the operands, at load. Called for each place that
  /// frames give them. `operands`: the addresses of the call's views, in the
  /// order in which the task asked for them.
  virtual Status bind(const DeviceAddress *) { return Status(); }
  /// The operands are at a place that was bound.
  virtual Status enqueue(const DeviceAddress *operands,
                         StreamHandle stream) const = 0;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_LIBRARYTASK_H

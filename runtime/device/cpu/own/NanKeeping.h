//===- NanKeeping.h - What the library drops NaN in, by loops ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library's relu, clip, max, min and largest element of a window give a
// number where an operand is NaN. These tasks give NaN there, and the library's
// bits everywhere else. They are used where a session keeps NaN
// (SessionOptions.nan).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_NANKEEPING_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_NANKEEPING_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// The post-op, one of those with `rules::losesNan`, in place on `result`.
std::unique_ptr<Task> makeNanKeeping(const PostOperation &post,
                                     const Operand &result,
                                     const ThreadTeam &team);

/// A pool_max call.
std::unique_ptr<Task> makeNanKeepingPool(const ResolvedCall &call,
                                         const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_NANKEEPING_H

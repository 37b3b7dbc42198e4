//===- NanKeeping.h - Post-ops and pooling that keep NaN --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library's relu, clip, max, min and max pooling give a number where an
// operand is NaN. These tasks give NaN there, and the same bits as the library
// everywhere else. They are used if a session keeps NaN
// (SessionOptions.keep_nan).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_OWN_NANKEEPING_H
#define PARTITA_RUNTIME_DEVICE_CPU_OWN_NANKEEPING_H

#include "runtime/device/cpu/onednn/LibraryCalls.h"

namespace partita::runtime {

/// A task that computes the post-op, one with `rules::losesNan`, in place on
/// `result`.
std::unique_ptr<Task> makeNanKeeping(const PostOperation &post,
                                     const Operand &result,
                                     const ThreadTeam &team);

/// A task that computes a pool_max call.
std::unique_ptr<Task> makeNanKeepingPool(const ResolvedCall &call,
                                         const ThreadTeam &team);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_OWN_NANKEEPING_H

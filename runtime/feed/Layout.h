//===- Layout.h - Samples in the bytes of a port ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_LAYOUT_H
#define PARTITA_RUNTIME_FEED_LAYOUT_H

#include "runtime/feed/Model.h"

#include "runtime/base/Status.h"
#include "runtime/io/Tensor.h"

namespace partita::feed {

/// A port's bytes as [outer, entries along the batch axis, inner].
struct Layout {
  int64_t outer = 1;
  int64_t inner = 1; ///< bytes
};

Layout layoutOf(const Port &port);

/// Copies `count` entries along the batch axis from one tensor of a port to
/// another. `toEntries` and `fromEntries` are the numbers of entries of the two
/// tensors. `toBegin` and `fromBegin` are the first entries that are copied.
void copyEntries(const Layout &layout, uint8_t *to, int64_t toEntries,
                 int64_t toBegin, const uint8_t *from, int64_t fromEntries,
                 int64_t fromBegin, int64_t count);

/// Copies the micro-batches that replica `replica` of `replicas` has computed
/// from one tensor of all samples to another.
void takeReplica(const Port &port, runtime::Tensor &to, const uint8_t *from,
                 int replica, int replicas);

/// Checks type and shape. Any number of samples but 0 is allowed.
runtime::Status checkInput(const Port &port, const runtime::Tensor &tensor);

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_LAYOUT_H

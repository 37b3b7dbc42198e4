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
/// another. Each has its own number of entries, and a place there to begin at.
void copyEntries(const Layout &layout, uint8_t *to, int64_t toEntries,
                 int64_t toBegin, const uint8_t *from, int64_t fromEntries,
                 int64_t fromBegin, int64_t count);

/// Copies from one tensor of all samples to another the micro-batches that
/// replica `replica` of `replicas` has computed.
void takeReplica(const Port &port, runtime::Tensor &to, const uint8_t *from,
                 int replica, int replicas);

/// Type and shape; any number of samples but 0.
runtime::Status checkInput(const Port &port, const runtime::Tensor &tensor);

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_LAYOUT_H

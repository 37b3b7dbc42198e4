//===- Content.h - Bytes that are written to a file -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_CONTENT_H
#define PARTITA_RUNTIME_TRAIN_CONTENT_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace partita::runtime::train {

/// Bytes that are written to a file. They are in memory, or they are fetched
/// when it is their turn, so that not all of a file is in memory at once.
class Content {
public:
  using Bytes = std::span<const uint8_t>;
  using Fetch = std::function<Expected<Bytes>()>;

  Content() = default;
  Content(Bytes bytes) : there(bytes), count(bytes.size()) {}
  /// `fetch` returns `size` bytes, which are valid until anything else is
  /// fetched.
  Content(uint64_t size, Fetch fetch) : count(size), fetch(std::move(fetch)) {}

  uint64_t size() const { return count; }
  bool empty() const { return count == 0; }
  Expected<Bytes> get() const { return fetch ? fetch() : Expected(there); }

private:
  Bytes there;
  uint64_t count = 0;
  Fetch fetch;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_CONTENT_H

//===- Arena.h - Memory of a device, mapped once ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_ARENA_H
#define PARTITA_RUNTIME_BASE_ARENA_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>

namespace partita::runtime {

/// Zeroed, page-aligned memory of a fixed size: a device's arena, its constant
/// region, packed weights, scratch. Pages become resident when they are used.
class Arena {
public:
  Arena() = default;
  ~Arena();
  Arena(Arena &&other) noexcept;
  Arena &operator=(Arena &&other) noexcept;

  /// Maps `bytes` bytes. The error message for too little memory names `what`.
  static Expected<Arena> map(size_t bytes, const char *what);

  uint8_t *data() const { return start; }
  size_t size() const { return bytes; }

private:
  uint8_t *start = nullptr;
  size_t bytes = 0;
};

/// The bytes of address space that the stack of a new thread takes.
size_t stackBytes();

/// Returns the pages that lie wholly in a range to the operating system. If
/// they are used again, pages of a mapped file are read again, and other pages
/// are zero.
void releasePages(const void *data, size_t bytes);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_ARENA_H

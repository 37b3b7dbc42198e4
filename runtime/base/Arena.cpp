//===- Arena.cpp - Memory of a device, mapped once ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Arena.h"

#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace partita::runtime {

Expected<Arena> Arena::map(size_t bytes, const char *what) {
  Arena arena;
  if (bytes == 0)
    return arena;
  void *start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED)
    return Status::error("no memory for " + std::to_string(bytes) +
                         " bytes of " + what + ": " + std::strerror(errno));
  // Fewer TLB misses; a refusal costs nothing but speed.
  (void)::madvise(start, bytes, MADV_HUGEPAGE);
  arena.start = static_cast<uint8_t *>(start);
  arena.bytes = bytes;
  return arena;
}

Arena::Arena(Arena &&other) noexcept
    : start(std::exchange(other.start, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

Arena::~Arena() {
  if (start)
    ::munmap(start, bytes);
}

size_t stackBytes() {
  pthread_attr_t attributes;
  size_t bytes = size_t(8) << 20;
  if (::pthread_getattr_default_np(&attributes) == 0) {
    (void)::pthread_attr_getstacksize(&attributes, &bytes);
    ::pthread_attr_destroy(&attributes);
  }
  return bytes;
}

void releasePages(const void *data, size_t bytes) {
  uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  uintptr_t end = (begin + bytes) / page * page;
  begin = (begin + page - 1) / page * page;
  if (begin < end)
    (void)::madvise(reinterpret_cast<void *>(begin), end - begin,
                    MADV_DONTNEED);
}

} // namespace partita::runtime

//===- Target.h - What the fuzz targets share -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target is a file FooTarget.cpp with libFuzzer's entry points: it gives the
// bytes to a reader and aborts if the reader breaks its promise (an error
// without a message, a result that contradicts its header). Built with
// PARTITA_FUZZ=ON it is linked with libFuzzer; otherwise with Drive.cpp, which
// knows the same entry points and needs no instrumentation.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_TARGET_H
#define PARTITA_TEST_FUZZ_TARGET_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
/// One input. Returns 0.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// Changes `data` in place, to at most `most` bytes; returns the new size.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed);
/// libFuzzer's own mutations, for custom mutators.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
}

namespace partita::fuzz {

/// Ends the process if a reader broke its promise.
inline void require(bool condition, const char *promise) {
  if (condition)
    return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// Bytes as a file that has a path, in memory.
class MemoryFile {
public:
  MemoryFile(const void *data, size_t size)
      : descriptor(::memfd_create("fuzz", MFD_CLOEXEC)) {
    const char *from = static_cast<const char *>(data);
    for (size_t done = 0; done < size;) {
      ssize_t now = ::write(descriptor, from + done, size - done);
      require(now > 0, "a file in memory can be written");
      done += static_cast<size_t>(now);
    }
  }
  ~MemoryFile() { ::close(descriptor); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  int descriptor;
};

/// Small, fast and the same everywhere: splitmix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number below `count`, which is not 0.
  uint64_t below(uint64_t count) { return next() % count; }

  /// Numbers at which size arithmetic breaks, and small ones.
  int64_t interesting() {
    static constexpr int64_t kEdges[] = {0,
                                         1,
                                         -1,
                                         2,
                                         -2,
                                         3,
                                         7,
                                         8,
                                         63,
                                         64,
                                         65,
                                         127,
                                         128,
                                         255,
                                         256,
                                         1000,
                                         4096,
                                         65535,
                                         65536,
                                         1 << 20,
                                         INT32_MAX,
                                         INT32_MIN,
                                         int64_t(INT32_MAX) + 1,
                                         int64_t(UINT32_MAX) + 1,
                                         int64_t(1) << 40,
                                         int64_t(1) << 47,
                                         int64_t(1) << 61,
                                         int64_t(1) << 62,
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT64_MAX - 63};
    return kEdges[below(sizeof(kEdges) / sizeof(kEdges[0]))];
  }

  /// `value`, changed a little or altogether.
  int64_t vary(int64_t value) {
    switch (below(6)) {
    case 0:
      return static_cast<int64_t>(static_cast<uint64_t>(value) + 1);
    case 1:
      return static_cast<int64_t>(static_cast<uint64_t>(value) - 1);
    case 2:
      return static_cast<int64_t>(static_cast<uint64_t>(value) << below(8));
    case 3:
      return value / 2;
    case 4:
      return static_cast<int64_t>(below(16));
    default:
      return interesting();
    }
  }

private:
  uint64_t state;
};

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_TARGET_H

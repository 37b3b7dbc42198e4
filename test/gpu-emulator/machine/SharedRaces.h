//===- SharedRaces.h - Races in shared memory -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_SHAREDRACES_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_SHAREDRACES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuemu {

/// Who touched each byte of a block's shared memory last, and when. Two
/// accesses of different threads, one of them a write, are a race unless a
/// barrier of the block, or one of the warp that both belong to, lies between.
class SharedRaces {
public:
  explicit SharedRaces(size_t bytes) : writes(bytes), reads(bytes) {}

  enum class Access : uint8_t { Read, Write, Atomic };
  struct Time {
    uint32_t block = 0, warp = 0;
  };

  /// Notes an access. Tells of a race in words.
  std::optional<std::string> access(uint32_t address, unsigned bytes,
                                    Access kind, unsigned thread, Time time);

private:
  /// Threads: of one, of several of a warp, of several warps.
  struct Stamp {
    uint32_t blockEpoch = ~uint32_t(0), warpEpoch = 0;
    uint16_t thread = 0;
    bool atomic = false;
    bool severalThreads = false, severalWarps = false;
  };
  static bool clashes(const Stamp &stamp, Access kind, unsigned thread,
                      Time time);

  std::vector<Stamp> writes, reads;
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_SHAREDRACES_H

//===- Warp.h - 32 lanes and the block that they belong to ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_WARP_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_WARP_H

#include "machine/Memory.h"
#include "machine/Program.h"
#include "machine/SharedRaces.h"

#include <deque>
#include <memory>

// Lanes do not depend on one another: a row may be read and written at once,
// but always at the same lane.
#if defined(__clang__)
#define GPUEMU_LANES                                                           \
  _Pragma("clang loop vectorize(assume_safety)") for (int n = 0; n < 32; ++n)
#else
#define GPUEMU_LANES _Pragma("GCC ivdep") for (int n = 0; n < 32; ++n)
#endif
/// The lanes of a mask, in order.
#define GPUEMU_ACTIVE(mask)                                                    \
  for (uint32_t lanesLeft = (mask), n = 0;                                     \
       lanesLeft && (n = uint32_t(__builtin_ctz(lanesLeft)), true);            \
       lanesLeft &= lanesLeft - 1)

namespace gpuemu {

constexpr uint32_t allLanes = ~uint32_t(0);

struct Block;

/// Lanes of a warp that go on together.
struct Group {
  uint32_t pc = 0;
  uint32_t mask = 0;
  enum State : uint8_t { Ready, AtBarrier, Meeting } state = Ready;
  /// Where calls return to, the outermost first, and their call sites.
  std::vector<uint32_t> calls;
};

/// cp.async: bytes on their way to shared memory.
struct AsyncCopy {
  uint32_t to = 0;
  uint8_t lane = 0;
  std::vector<uint8_t> bytes, written;
};

struct Warp {
  Block *block = nullptr;
  unsigned index = 0;
  uint8_t *registers = nullptr;
  /// The lanes that run the present instruction.
  uint32_t active = 0;
  /// Lanes that exist, and those of them that have not left the kernel.
  uint32_t full = 0, live = 0;
  uint32_t carry = 0;
  uint32_t epoch = 0;
  unsigned slices = 0;
  uint32_t waitingAt = 0;
  std::vector<Group> groups;
  /// The copies of each lane that wait, in groups; the last is still open.
  std::deque<std::vector<AsyncCopy>> asyncCopies[32];

  template <typename T> T *row(uint32_t offset) {
    return reinterpret_cast<T *>(registers + offset);
  }
  uint32_t &predicate(uint32_t offset) { return *row<uint32_t>(offset); }
  unsigned thread(unsigned lane) const { return index * 32 + lane; }
};

struct Launch {
  std::shared_ptr<const Program> program;
  /// Keeps the module's memory alive.
  std::shared_ptr<const void> module;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned dynamicShared = 0;
  std::vector<uint8_t> parameters;
  int device = 0;
  /// A bit for each device whose memory this one may reach.
  uint64_t reachable = ~uint64_t(0);
  uint64_t number = 0;
};

/// A block that runs, and the memory that only its threads see.
struct Block {
  const Program *program = nullptr;
  const Launch *launch = nullptr;
  Memory *memory = nullptr;
  unsigned id[3] = {0, 0, 0};
  unsigned threads = 0;
  std::vector<uint8_t> shared, sharedWritten;
  std::vector<uint8_t> local, localWritten;
  std::vector<Warp> warps;
  /// For each memory instruction the allocation that it met last.
  std::vector<AccessCache> caches;
  std::unique_ptr<SharedRaces> races;
  uint32_t epoch = 0;
  uint64_t steps = 0;
  uint64_t laneSteps = 0;
  bool checkWritten = true;
};

/// "kernel k, PTX line 12 `...`, block (0,0,0), thread (3,0,0)".
std::string describePlace(const Warp &warp, const Instruction &instruction,
                          unsigned lane);
[[noreturn]] void failAt(int error, const std::string &what, const Warp &warp,
                         const Instruction &instruction, unsigned lane);

/// Writes f(lane) to the row `d`, for the lanes that are active.
template <typename D, typename F>
inline void eachLane(Warp &warp, uint32_t d, F f) {
  D *out = warp.row<D>(d);
  if (warp.active == allLanes) {
    GPUEMU_LANES out[n] = f(n);
    return;
  }
  alignas(64) D result[32];
  GPUEMU_LANES result[n] = f(n);
  uint32_t active = warp.active;
  GPUEMU_LANES out[n] = active >> n & 1 ? result[n] : out[n];
}

/// Sets the predicate at `d` to f(lane), for the lanes that are active.
template <typename F> inline void eachPredicate(Warp &warp, uint32_t d, F f) {
  if (d == noRow)
    return;
  alignas(64) uint32_t bit[32];
  GPUEMU_LANES bit[n] = uint32_t(f(n)) << n;
  uint32_t mask = 0;
  for (int n = 0; n < 32; ++n)
    mask |= bit[n];
  uint32_t &out = warp.predicate(d);
  out = (out & ~warp.active) | (mask & warp.active);
}

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_WARP_H

//===- Access.h - Checked accesses of a lane to memory ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_ACCESS_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_ACCESS_H

#include "machine/Warp.h"

namespace gpuemu {

enum class AccessKind : uint8_t { Read, Write, Atomic };

/// Where the bytes of an address are. `written` is null where all bytes count
/// as written.
struct Reached {
  uint8_t *data = nullptr;
  uint8_t *written = nullptr;
  Space space = Space::Global;
};

/// Finds the bytes of an access. Throws a Fault for a misaligned address, one
/// out of bounds, a read of bytes that nothing wrote, and a race in shared
/// memory. The address is one of the instruction's space.
Reached reach(Warp &warp, const Instruction &x, unsigned lane, Space space,
              uint64_t address, unsigned bytes, AccessKind kind);

/// The same for global memory.
Reached reachGlobal(Warp &warp, const Instruction &x, unsigned lane,
                    uint64_t address, uint64_t bytes, AccessKind kind);

/// The bytes of several lanes at once; `data` is null where one of them makes
/// an error, which an access of each lane by itself then finds.
Reached tryGlobal(Warp &warp, const Instruction &x, uint64_t address,
                  uint64_t bytes, AccessKind kind);

/// Notes an access to shared memory where races are looked for.
void noteShared(Warp &warp, const Instruction &x, unsigned lane,
                uint64_t address, unsigned bytes, AccessKind kind);

/// The address that an address operand has in a lane.
inline uint64_t addressOf(Warp &warp, const Instruction &x, unsigned lane) {
  if (x.a == noRow)
    return uint64_t(x.value);
  if (x.wide)
    return warp.row<uint64_t>(x.a)[lane] + uint64_t(x.value);
  return uint32_t(warp.row<uint32_t>(x.a)[lane] + uint32_t(x.value));
}

/// The place in shared memory of an address there, or in its window.
inline uint64_t sharedAddress(uint64_t address) {
  return (address & ~windowMask) == sharedWindow ? address & windowMask
                                                 : address;
}

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_ACCESS_H

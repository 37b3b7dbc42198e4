//===- Memory.h - The memory of emulated devices ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device address lies in memory that is reserved but not mapped, so that the
// host faults where it touches it; the bytes are elsewhere. Addresses are not
// given out again, so that a use after a free is found. A second array tells
// for each byte whether something has written it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_MEMORY_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_MEMORY_H

#include "ptx/Types.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace gpuemu {

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint8_t *data = nullptr;
  /// For each byte 1 where it was written; null where all are.
  uint8_t *written = nullptr;
  int device = 0;
  /// Pinned host memory: the host sees it under the same address.
  bool isHost = false;
  /// Pinned by cuMemHostRegister: not ours to unmap.
  bool isForeign = false;
  bool isReadOnly = false;
  /// Of a module, and not by an allocation.
  bool isVariable = false;
  std::atomic<bool> freed = false;

  ~Allocation();
};

/// What an instruction met last; valid while no memory is freed.
struct AccessCache {
  const Allocation *allocation = nullptr;
  uint64_t generation = 0;
};

class Memory {
public:
  /// `bytes` of memory a device.
  Memory(int devices, uint64_t bytes);

  /// Throws a Fault where the device has too little memory.
  uint64_t allocate(int device, uint64_t bytes, bool isVariable = false);
  /// Memory of the host that devices see; `data` or memory of its own.
  void *allocateHost(uint64_t bytes);
  void registerHost(void *data, uint64_t bytes);
  /// Throws a Fault where no allocation begins there.
  void free(uint64_t address, bool isHost, bool isForeign = false);
  void setReadOnly(uint64_t address);

  /// The live allocation that holds the bytes, or null.
  const Allocation *find(uint64_t address, uint64_t bytes) const;
  /// Words for an address that no live allocation holds.
  std::string describe(uint64_t address) const;

  uint64_t freeBytes(int device) const;
  uint64_t totalBytes() const { return bytesEach; }
  uint64_t generation() const {
    return generations.load(std::memory_order_acquire);
  }
  size_t liveAllocations() const;

private:
  void add(std::shared_ptr<Allocation> allocation);
  uint64_t reserve(uint64_t bytes);

  mutable std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Allocation>> live;
  /// Freed allocations, for messages, and for kernels that still run.
  std::map<uint64_t, std::shared_ptr<Allocation>> gone;
  std::vector<uint64_t> used;
  uint64_t bytesEach;
  uint64_t nextAddress = 0, endAddress = 0;
  std::atomic<uint64_t> generations = 1;
};

/// Bytes of a device, for copies and for stand-ins of libraries. Throws a Fault
/// where an allocation does not hold them all; `what` begins the message.
struct Bytes {
  uint8_t *data = nullptr;
  uint8_t *written = nullptr;
};
Bytes deviceBytes(const Memory &memory, uint64_t address, uint64_t bytes,
                  const char *what);
/// The first of the bytes that nothing wrote, or `bytes`.
uint64_t firstUnwritten(const uint8_t *written, uint64_t bytes);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_MEMORY_H

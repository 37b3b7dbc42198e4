//===- Access.cpp - Checked accesses of a lane to memory --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Access.h"

#include "machine/Error.h"

#include <cstring>

using namespace gpuemu;

namespace {

std::string text(const char *what, unsigned long long value) {
  char buffer[80];
  snprintf(buffer, sizeof buffer, what, value);
  return buffer;
}

const char *verb(AccessKind kind) {
  return kind == AccessKind::Read    ? "a read"
         : kind == AccessKind::Write ? "a write"
                                     : "an atomic operation";
}

void checkWritten(const Reached &found, uint64_t bytes, const char *where,
                  uint64_t address, Warp &warp, const Instruction &x,
                  unsigned lane) {
  if (!warp.block->checkWritten)
    return;
  uint64_t first = firstUnwritten(found.written, bytes);
  if (first != bytes)
    failAt(LaunchFailed,
           std::string("a read of ") + where +
               " memory that nothing wrote, at " +
               text("0x%llx", address + first),
           warp, x, lane);
}

/// Memory that belongs to the block or the thread, as a range of a buffer.
Reached reachOwn(std::vector<uint8_t> &data, std::vector<uint8_t> &written,
                 uint64_t start, uint64_t size, uint64_t address,
                 unsigned bytes, AccessKind kind, Space space, Warp &warp,
                 const Instruction &x, unsigned lane) {
  const char *name = space == Space::Shared ? "shared" : "local";
  if (address > size || bytes > size - address)
    failAt(IllegalAddress,
           std::string(verb(kind)) + " of " + std::to_string(bytes) +
               text(" bytes at 0x%llx", address) + ", past the " +
               std::to_string(size) + " bytes of " + name + " memory",
           warp, x, lane);
  Reached found{data.data() + start + address,
                written.empty() ? nullptr : written.data() + start + address,
                space};
  if (kind != AccessKind::Write)
    checkWritten(found, bytes, name, address, warp, x, lane);
  return found;
}

} // namespace

Reached gpuemu::reachGlobal(Warp &warp, const Instruction &x, unsigned lane,
                            uint64_t address, uint64_t bytes, AccessKind kind) {
  if (Reached found = tryGlobal(warp, x, address, bytes, kind); found.data)
    return found;
  Block &block = *warp.block;
  const Allocation *found = block.memory->find(address, bytes);
  if (!found)
    failAt(IllegalAddress,
           std::string(verb(kind)) + " of " + std::to_string(bytes) +
               " bytes: " + block.memory->describe(address),
           warp, x, lane);
  if (!found->isHost && !(block.launch->reachable >> found->device & 1))
    failAt(IllegalAddress,
           std::string(verb(kind)) + " of memory of device " +
               std::to_string(found->device) +
               ", to which peer access is not enabled",
           warp, x, lane);
  if (kind != AccessKind::Read && found->isReadOnly)
    failAt(IllegalAddress, std::string(verb(kind)) + " of constant memory",
           warp, x, lane);
  uint64_t offset = address - found->address;
  Reached result{found->data + offset,
                 found->written ? found->written + offset : nullptr,
                 Space::Global};
  checkWritten(result, bytes, "global", address, warp, x, lane);
  return result;
}

Reached gpuemu::tryGlobal(Warp &warp, const Instruction &x, uint64_t address,
                          uint64_t bytes, AccessKind kind) {
  Block &block = *warp.block;
  AccessCache &cache = block.caches[x.index];
  uint64_t generation = block.memory->generation();
  const Allocation *found = cache.allocation;
  if (cache.generation != generation || !found ||
      address - found->address > found->bytes ||
      bytes > found->bytes - (address - found->address)) {
    found = block.memory->find(address, bytes);
    if (!found ||
        (!found->isHost && !(block.launch->reachable >> found->device & 1)))
      return {};
    cache = {found, generation};
  }
  if (kind != AccessKind::Read && found->isReadOnly)
    return {};
  uint64_t offset = address - found->address;
  Reached result{found->data + offset,
                 found->written ? found->written + offset : nullptr,
                 Space::Global};
  if (kind != AccessKind::Write && block.checkWritten &&
      firstUnwritten(result.written, bytes) != bytes)
    return {};
  return result;
}

void gpuemu::noteShared(Warp &warp, const Instruction &x, unsigned lane,
                        uint64_t address, unsigned bytes, AccessKind kind) {
  Block &block = *warp.block;
  if (!block.races)
    return;
  auto access = kind == AccessKind::Read    ? SharedRaces::Access::Read
                : kind == AccessKind::Write ? SharedRaces::Access::Write
                                            : SharedRaces::Access::Atomic;
  if (auto race =
          block.races->access(uint32_t(address), bytes, access,
                              warp.thread(lane), {block.epoch, warp.epoch}))
    failAt(LaunchFailed, "a race: " + *race, warp, x, lane);
}

Reached gpuemu::reach(Warp &warp, const Instruction &x, unsigned lane,
                      Space space, uint64_t address, unsigned bytes,
                      AccessKind kind) {
  Block &block = *warp.block;
  if (uint64_t window = address & ~windowMask; window) {
    Space named = window == sharedWindow  ? Space::Shared
                  : window == localWindow ? Space::Local
                  : window == paramWindow ? Space::Param
                                          : Space::Global;
    if (space == Space::Generic) {
      space = named;
      address &= windowMask;
    }
  }
  if (address % bytes)
    failAt(MisalignedAddress,
           std::string(verb(kind)) + " of " + std::to_string(bytes) +
               text(" bytes at the misaligned address 0x%llx", address),
           warp, x, lane);
  switch (space) {
  case Space::Shared: {
    Reached found =
        reachOwn(block.shared, block.sharedWritten, 0, block.shared.size(),
                 address, bytes, kind, space, warp, x, lane);
    noteShared(warp, x, lane, address, bytes, kind);
    return found;
  }
  case Space::Local: {
    uint64_t size = block.program->localBytes;
    return reachOwn(block.local, block.localWritten,
                    uint64_t(warp.thread(lane)) * size, size, address, bytes,
                    kind, space, warp, x, lane);
  }
  case Space::Param: {
    const std::vector<uint8_t> &parameters = block.launch->parameters;
    if (address > parameters.size() || bytes > parameters.size() - address ||
        kind != AccessKind::Read)
      failAt(IllegalAddress,
             std::string(verb(kind)) + " outside of the kernel's parameters",
             warp, x, lane);
    return {const_cast<uint8_t *>(parameters.data()) + address, nullptr, space};
  }
  default:
    return reachGlobal(warp, x, lane, address, bytes, kind);
  }
}

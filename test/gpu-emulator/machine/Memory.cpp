//===- Memory.cpp - The memory of emulated devices --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "machine/Memory.h"

#include "machine/Error.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

using namespace gpuemu;

namespace {

constexpr uint64_t alignment = 512;
/// Between two allocations, so that what runs over one misses the next.
constexpr uint64_t gap = 4096;
constexpr uint64_t reservation = uint64_t(1) << 38;

uint64_t roundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

uint8_t *mapBytes(uint64_t bytes) {
  void *result = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (result == MAP_FAILED)
    throw Fault(OutOfMemory, "the host has no " + std::to_string(bytes) +
                                 " bytes for an emulated device");
  return static_cast<uint8_t *>(result);
}

std::string hexadecimal(uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

} // namespace

Allocation::~Allocation() {
  if (isForeign)
    return;
  munmap(data, roundUp(bytes, gap));
  if (written)
    munmap(written, roundUp(bytes, gap));
}

Memory::Memory(int devices, uint64_t bytes)
    : used(size_t(devices)), bytesEach(bytes) {}

uint64_t Memory::reserve(uint64_t bytes) {
  uint64_t need = roundUp(bytes, gap) + gap;
  if (nextAddress + need > endAddress) {
    uint64_t size = std::max(reservation, need);
    void *start = mmap(nullptr, size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
      throw Fault(OutOfMemory, "the host has no addresses for a device");
    nextAddress = reinterpret_cast<uint64_t>(start);
    endAddress = nextAddress + size;
  }
  uint64_t result = nextAddress;
  nextAddress += need;
  return result;
}

void Memory::add(std::shared_ptr<Allocation> allocation) {
  gone.erase(allocation->address);
  live[allocation->address] = std::move(allocation);
}

uint64_t Memory::allocate(int device, uint64_t bytes, bool isVariable) {
  std::lock_guard guard(mutex);
  uint64_t size = roundUp(bytes, alignment);
  if (size < bytes || size > bytesEach - used[size_t(device)])
    throw Fault(OutOfMemory,
                "out of memory: " + std::to_string(bytes) + " bytes wanted, " +
                    std::to_string(bytesEach - used[size_t(device)]) +
                    " bytes free on device " + std::to_string(device));
  auto result = std::make_shared<Allocation>();
  result->bytes = bytes;
  result->device = device;
  result->isVariable = isVariable;
  result->data = mapBytes(roundUp(bytes, gap));
  result->written = mapBytes(roundUp(bytes, gap));
  result->address = reserve(bytes);
  // Not a number in every format. Small enough to fill; more would make every
  // page of a large arena resident.
  memset(result->data, 0xff, std::min<uint64_t>(bytes, 1 << 24));
  used[size_t(device)] += size;
  uint64_t address = result->address;
  add(std::move(result));
  return address;
}

void *Memory::allocateHost(uint64_t bytes) {
  std::lock_guard guard(mutex);
  auto result = std::make_shared<Allocation>();
  result->bytes = bytes;
  result->isHost = true;
  result->device = -1;
  result->data = mapBytes(roundUp(bytes, gap));
  result->address = reinterpret_cast<uint64_t>(result->data);
  void *data = result->data;
  add(std::move(result));
  return data;
}

void Memory::registerHost(void *data, uint64_t bytes) {
  std::lock_guard guard(mutex);
  auto result = std::make_shared<Allocation>();
  result->bytes = bytes;
  result->isHost = result->isForeign = true;
  result->device = -1;
  result->data = static_cast<uint8_t *>(data);
  result->address = reinterpret_cast<uint64_t>(data);
  add(std::move(result));
}

void Memory::free(uint64_t address, bool isHost, bool isForeign) {
  std::lock_guard guard(mutex);
  auto found = live.find(address);
  if (found == live.end() || found->second->isHost != isHost ||
      found->second->isForeign != isForeign)
    throw Fault(InvalidValue,
                "no allocation begins at " + hexadecimal(address) +
                    (gone.count(address) ? ": it was freed before" : ""));
  std::shared_ptr<Allocation> allocation = std::move(found->second);
  live.erase(found);
  allocation->freed = true;
  generations.fetch_add(1, std::memory_order_acq_rel);
  if (isHost)
    return;
  used[size_t(allocation->device)] -= roundUp(allocation->bytes, alignment);
  // The pages go; the record stays, for the message about a use of them.
  madvise(allocation->data, roundUp(allocation->bytes, gap), MADV_DONTNEED);
  madvise(allocation->written, roundUp(allocation->bytes, gap), MADV_DONTNEED);
  gone[address] = std::move(allocation);
  if (gone.size() > 4096)
    gone.erase(gone.begin());
}

void Memory::setReadOnly(uint64_t address) {
  std::lock_guard guard(mutex);
  live.at(address)->isReadOnly = true;
}

const Allocation *Memory::find(uint64_t address, uint64_t bytes) const {
  std::lock_guard guard(mutex);
  auto next = live.upper_bound(address);
  if (next == live.begin())
    return nullptr;
  const Allocation &found = *std::prev(next)->second;
  uint64_t offset = address - found.address;
  return offset <= found.bytes && bytes <= found.bytes - offset ? &found
                                                                : nullptr;
}

std::string Memory::describe(uint64_t address) const {
  std::lock_guard guard(mutex);
  std::string result = "the address " + hexadecimal(address);
  for (const auto *map : {&live, &gone}) {
    auto next = map->upper_bound(address);
    if (next == map->begin())
      continue;
    const Allocation &found = *std::prev(next)->second;
    uint64_t offset = address - found.address;
    if (map == &gone && offset < found.bytes)
      return result + " lies in an allocation of " +
             std::to_string(found.bytes) + " bytes that was freed";
    if (map == &live && offset < found.bytes + gap)
      return result + " is " + std::to_string(offset) +
             " bytes after the start of an allocation of " +
             std::to_string(found.bytes) + " bytes";
  }
  return result + " lies in no allocation";
}

uint64_t Memory::freeBytes(int device) const {
  std::lock_guard guard(mutex);
  return bytesEach - used[size_t(device)];
}

size_t Memory::liveAllocations() const {
  std::lock_guard guard(mutex);
  return size_t(std::count_if(live.begin(), live.end(), [](const auto &entry) {
    return !entry.second->isVariable;
  }));
}

Bytes gpuemu::deviceBytes(const Memory &memory, uint64_t address,
                          uint64_t bytes, const char *what) {
  const Allocation *found = memory.find(address, bytes);
  if (!found)
    throw Fault(InvalidValue, std::string(what) + " of " +
                                  std::to_string(bytes) +
                                  " bytes: " + memory.describe(address));
  uint64_t offset = address - found->address;
  return {found->data + offset,
          found->written ? found->written + offset : nullptr};
}

uint64_t gpuemu::firstUnwritten(const uint8_t *written, uint64_t bytes) {
  if (!written)
    return bytes;
  const void *found = memchr(written, 0, bytes);
  return found ? uint64_t(static_cast<const uint8_t *>(found) - written)
               : bytes;
}

//===- CpuShare.cpp - Memory of a CPU device of several plans -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CpuShare.h"

#include <algorithm>
#include <cstring>
#include <xxhash.h>

namespace partita::runtime {

uint8_t *CpuShare::place(uint8_t *bytes, size_t count,
                         const std::shared_ptr<const Arena> &region) {
  const uint64_t hash = XXH3_64bits(bytes, count);
  auto [begin, end] = byHash.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (constants.at(it->second).bytes == count &&
        std::memcmp(it->second, bytes, count) == 0)
      return it->second;
  byHash.emplace(hash, bytes);
  constants.emplace(bytes, Constant{count});
  if (regions.empty() || regions.back() != region)
    regions.push_back(region);
  return bytes;
}

void CpuShare::markRead(const uint8_t *bytes) {
  if (auto found = constants.find(bytes); found != constants.end())
    found->second.read = true;
}

void CpuShare::releaseUnread() {
  for (const auto &[begin, constant] : constants)
    if (!constant.read)
      releasePages(begin, constant.bytes);
}

Expected<uint8_t *> CpuShare::state(const std::string &name, size_t bytes,
                                    bool &isNew) {
  auto found = states.find(name);
  isNew = found == states.end();
  if (isNew) {
    auto made = PARTITA_TRY(Arena::map(bytes, "a state"));
    found = states.emplace(name, std::move(made)).first;
  }
  return found->second.data();
}

} // namespace partita::runtime

//===- CpuShare.h - Memory of a CPU device of several plans -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_CPUSHARE_H
#define PARTITA_RUNTIME_DEVICE_CPU_CPUSHARE_H

#include "runtime/base/Arena.h"
#include "runtime/device/SharedDevices.h"
#include "runtime/device/cpu/onednn/Onednn.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace partita::runtime {

/// The arena, constants and packed weights of a device. A device of an artifact
/// with one plan has a share of its own.
class CpuShare final : public DeviceShare {
public:
  /// `isShared`: whether there may be devices of other plans.
  CpuShare(Arena arena, bool isShared)
      : arena(std::move(arena)), isShared(isShared) {}

  /// The place of bytes that a plan's load program has computed. Equal bytes
  /// get the same place. `region` holds the bytes, and stays alive with the
  /// share.
  uint8_t *place(uint8_t *bytes, size_t count,
                 const std::shared_ptr<const Arena> &region);

  /// Whether a place that `place` has given begins here. Plans that are not
  /// loaded yet may read it.
  bool holds(const uint8_t *bytes) const { return constants.count(bytes) != 0; }

  /// Notes that a device reads a place that `place` has given.
  void markRead(const uint8_t *bytes);
  void releaseUnread() override;

  /// The bytes of a state, by name. The first device that asks gets zeros, and
  /// `isNew`.
  Expected<uint8_t *> state(const std::string &name, size_t bytes, bool &isNew);

  const Arena arena;
  const bool isShared;
  PackedWeights packed;

private:
  struct Constant {
    size_t bytes;
    bool read = false;
  };
  std::multimap<uint64_t, uint8_t *> byHash;
  std::map<const uint8_t *, Constant> constants;
  std::vector<std::shared_ptr<const Arena>> regions;
  std::map<std::string, Arena> states;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_CPUSHARE_H

//===- DeviceKinds.h - Names of the kinds of devices ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_DEVICEKINDS_H
#define PARTITA_RUNTIME_ABI_DEVICEKINDS_H

#include "runtime/abi/plan_generated.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace partita::abi {

/// The name of a kind in options and messages, e.g. "cuda".
inline std::string getName(DeviceKind kind) {
  std::string name = EnumNameDeviceKind(kind);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// Whether devices of a kind start kernels by their Launch, from the PTX
/// section, rather than from an object for a CPU.
inline bool launchesGrids(DeviceKind kind) { return kind == DeviceKind::cuda; }

/// Whether a machine counts its devices of a kind from 0, and several devices
/// of a plan may use the same one.
inline bool isNumbered(DeviceKind kind) { return kind == DeviceKind::cuda; }

/// Those for people: a test has one more.
inline std::vector<std::string> getDeviceKindNames() {
  std::vector<std::string> names;
  for (DeviceKind kind : EnumValuesDeviceKind())
    if (kind != DeviceKind::remote_cpu)
      names.push_back(getName(kind));
  return names;
}

inline std::optional<DeviceKind> findDeviceKind(std::string_view name) {
  for (DeviceKind kind : EnumValuesDeviceKind())
    if (getName(kind) == name)
      return kind;
  return std::nullopt;
}

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_DEVICEKINDS_H

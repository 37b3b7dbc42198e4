//===- DeviceFigures.h - What was measured of a device ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_DEVICEFIGURES_H
#define PARTITA_RUNTIME_DEVICE_DEVICEFIGURES_H

#include <string>
#include <utility>
#include <vector>

namespace partita::runtime {

/// What a device can do that is no part of the processor, for the compiler's
/// cost model. `runtime/abi/machine.h` defines the names of speeds.
struct DeviceFigures {
  std::string kind, architecture, name;
  std::vector<std::pair<std::string, double>> speeds;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_DEVICEFIGURES_H

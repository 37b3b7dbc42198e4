//===- Calibrate.h - Measures a machine -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CALIBRATE_CALIBRATE_H
#define PARTITA_RUNTIME_CALIBRATE_CALIBRATE_H

#include "runtime/base/Status.h"
#include "runtime/calibrate/MachineSpeeds.h"

#include <functional>

namespace partita::runtime {

struct CalibrateOptions {
  double seconds = 45; ///< approximate time of measuring
  /// Called with the number of measurements done so far, and of all.
  std::function<void(int done, int all)> progress;
};

/// Measures the machine on the cores that this process may use: library calls
/// and loops by shape, memory by working set, transfers between devices, and
/// collectives of two. It does so for devices of one thread, of all cores, and
/// of powers of two in between; and one of each architecture of other devices
/// that the machine has (`DeviceType::measure`). Each pass takes the least time
/// of a measurement; a value is the median over several passes. So neither an
/// interruption nor a lucky moment decides.
Expected<MachineSpeeds> calibrate(const CalibrateOptions &options);

/// Name of this machine's processor.
std::string cpuName();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_CALIBRATE_H

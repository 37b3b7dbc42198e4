//===- Calibrate.h - Measures a machine -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CALIBRATE_CALIBRATE_H
#define PARTITA_RUNTIME_CALIBRATE_CALIBRATE_H

#include "runtime/base/Status.h"
#include "runtime/calibrate/MachineRates.h"

#include <functional>

namespace partita::runtime {

struct CalibrateOptions {
  double seconds = 45; ///< of measuring, about
  /// Called with what is measured, and how much of all is done.
  std::function<void(int done, int all)> progress;
};

/// Measures the machine on the cores that this process may use: library calls
/// and loops by shape, memory by working set, transfers between devices; for
/// one thread a device, for all cores, and for powers of two between. A value
/// is the median over several passes of the least time of a pass, so that
/// neither an interruption nor a lucky moment decides.
Expected<MachineRates> calibrate(const CalibrateOptions &options);

/// Name of this machine's processor.
std::string cpuName();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_CALIBRATE_CALIBRATE_H

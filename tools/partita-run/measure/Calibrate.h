//===- Calibrate.h - partita-run --calibrate --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_MEASURE_CALIBRATE_H
#define PARTITA_TOOLS_PARTITA_RUN_MEASURE_CALIBRATE_H

#include "tools/partita-run/Options.h"

namespace partita::run {

/// Measures this machine and writes the file for `partita-compile --machine`.
/// Prints a short summary of it; with --json the text of the file. Returns the
/// exit status.
int runCalibration(const Options &options);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_CALIBRATE_H

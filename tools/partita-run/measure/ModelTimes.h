//===- ModelTimes.h - The times of a model's work ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--calibrate FILE ART.partita` times the work of a compiled model, with
// --train that of the plan that learns. Rates by shape class predict the time
// of work that nobody has run. The file gets the measured time and the
// predicted time of each piece of work, by its key. The compiler corrects its
// predictions by their ratio, even if stages are cut elsewhere.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_MEASURE_MODELTIMES_H
#define PARTITA_TOOLS_PARTITA_RUN_MEASURE_MODELTIMES_H

#include "tools/partita-run/Run.h"

#include "runtime/calibrate/MachineSpeeds.h"

namespace partita::run {

/// Reads the file of --calibrate. Fails unless the artifact was compiled with
/// that file, for as many cores per device as the run will have.
runtime::Expected<runtime::MachineSpeeds>
readMachine(const Options &options, const Model &model, Job &job);

/// Adds the times of steps to the file, and says so.
runtime::Status addTimes(const Options &options, const Model &model, Job &job,
                         const std::vector<Profile::Event> &events,
                         const std::vector<double> &stepNs);

/// Measures the model and adds its times to the file. Returns the exit status.
int runModelCalibration(Context &context, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_MODELTIMES_H

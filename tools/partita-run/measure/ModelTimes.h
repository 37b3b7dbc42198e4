//===- ModelTimes.h - What a model's work takes on this machine -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--calibrate FILE ART.partita`: rates by shape class let expect how long work
// takes that nobody has run; where the model has been compiled, its own work
// can be timed. The file gets both times of each piece of work, by its key,
// and the compiler corrects its expectation by their ratio, also where stages
// are cut elsewhere.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_MEASURE_MODELTIMES_H
#define PARTITA_TOOLS_PARTITA_RUN_MEASURE_MODELTIMES_H

#include "tools/partita-run/Run.h"

#include "runtime/calibrate/MachineRates.h"

namespace partita::run {

/// Reads the file of --calibrate. Fails unless the artifact was compiled with
/// it, for as many cores a device as the run will have.
runtime::Expected<runtime::MachineRates>
readMachine(const Options &options, const Model &model, Team &team);

/// Times of the work of a step, by key. Of the steps, those count whose own
/// time is among the middle half: what all of them together took is then
/// about the median of a step.
std::map<uint64_t, runtime::WorkTime>
collectWork(const Model &model, const std::vector<Profile::Event> &events,
            const std::vector<double> &stepNs);

/// Measures the model, and writes the file with what it took. The exit status.
int runModelCalibration(Context &context, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_MODELTIMES_H

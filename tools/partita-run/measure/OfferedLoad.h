//===- OfferedLoad.h - How long samples take at a given rate ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_MEASURE_OFFEREDLOAD_H
#define PARTITA_TOOLS_PARTITA_RUN_MEASURE_OFFEREDLOAD_H

#include "tools/partita-run/Run.h"

namespace partita::run {

/// Runs --benchmark --rate. Samples come one by one at random times, as from
/// many independent users, and go through a feed::Stream. A sample's latency
/// counts from the time at which it should have come. So the latencies show
/// whether a stream cannot keep up. Prints latencies and the served load; with
/// --json one object. All devices must be in this process.
int runOfferedLoad(const Options &options, const Model &model, Job &job,
                   const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_OFFEREDLOAD_H

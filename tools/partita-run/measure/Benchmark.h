//===- Benchmark.h - Measuring steps ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_MEASURE_BENCHMARK_H
#define PARTITA_TOOLS_PARTITA_RUN_MEASURE_BENCHMARK_H

#include "tools/partita-run/Run.h"

#include "runtime/base/Arena.h"

namespace partita::run {

/// Value at share `q` of sorted values, between neighbours linearly, as
/// numpy.percentile.
double percentile(const std::vector<double> &sorted, double q);

/// What steps took that were run again and again.
struct Measurement {
  std::vector<double> wall; ///< nanoseconds, by run
  std::vector<double> busy; ///< of all devices together, by run
  std::vector<runtime::DeviceMemory> memory;
  double heap = 0;     ///< allocations from the heap in all measured steps
  double resident = 0; ///< the most memory of all processes together, bytes
  double stream = 0;   ///< nanoseconds a step, where steps overlap
};

/// A step with all its micro-batches, the inputs of `feed` and outputs for
/// nobody. If there is no memory for them, the run ends.
class WholeStep {
public:
  WholeStep(Context &context, Feed &feed);
  runtime::StepBinding binding;

private:
  std::vector<runtime::Arena> outputs;
};

/// Runs the step as often as the options say. Events come into the context's
/// profile, if it has one. `memory` stays empty.
Measurement measureSteps(Context &context, const runtime::StepBinding &binding);

/// Runs --benchmark: whole steps, first --warmup, then --runs of them, one at a
/// time; then as many that overlap. Prints times, samples a second, the idle
/// share (bubble) measured beside the predicted one, and memory; with --json
/// one object.
int runBenchmark(Context &context, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_BENCHMARK_H

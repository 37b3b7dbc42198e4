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

/// The value at share `q` of sorted values, with linear interpolation as in
/// numpy.percentile.
double percentile(const std::vector<double> &sorted, double q);

/// What the system says of a process, programs and libraries included; bytes, 0
/// where it does not say.
struct ResidentMemory {
  double loaded = 0; ///< before the first step
  double peak = 0;   ///< from the beginning of the program on
};

/// The measurements of steps that were run again and again.
struct Measurement {
  int64_t steps = 0;        ///< that were measured
  std::vector<double> wall; ///< nanoseconds, of a sample of them (`Sample`)
  /// Work of all devices in these; NaN: not measured, as on GPUs.
  std::vector<double> busy;
  std::vector<runtime::DeviceMemory> memory;
  double heap = 0; ///< allocations from the heap in all measured steps
  std::vector<ResidentMemory> resident; ///< by process, on process 0
  double stream = 0; ///< nanoseconds per step, if steps overlap
};

/// A step with all its micro-batches, with the inputs of `feed`. Its outputs
/// are dropped. If there is no memory for them, the run ends.
class WholeStep {
public:
  WholeStep(Context &context, Feed &feed);
  runtime::StepBinding binding;

private:
  std::vector<runtime::Arena> outputs;
};

/// Runs the step as often as the options say. Events go to the context's
/// profile, if it has one. `memory` stays empty.
Measurement measureSteps(Context &context, const runtime::StepBinding &binding);

/// Runs --benchmark. It runs whole steps one at a time: first --warmup of them,
/// then --runs. Then it runs as many steps that overlap. Prints times, samples
/// per second, the idle share (bubble) measured beside the predicted one, and
/// memory; with --json one object. Returns the exit status.
int runBenchmark(Context &context, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_MEASURE_BENCHMARK_H

//===- Benchmark.h - Measuring steps ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_BENCHMARK_H
#define PARTITA_TOOLS_PARTITA_RUN_BENCHMARK_H

#include "Run.h"

namespace partita::run {

/// Value at share `q` of sorted values, between neighbours linearly, as
/// numpy.percentile.
double percentile(const std::vector<double> &sorted, double q);

/// Runs --benchmark: whole steps, first --warmup, then --runs of them. Prints
/// times, samples a second, the idle share (bubble) measured beside the
/// predicted one, and memory; with --json one object.
int runBenchmark(Context &context, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_BENCHMARK_H

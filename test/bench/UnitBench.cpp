//===- UnitBench.cpp - What a unit costs besides its work -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of a thousand units, each a kernel on 16 floats between an input and an
// output. "ns_per_unit" is a step's time by its units; it should stay below
// 2000 with one device.
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/session/Session.h"

#include <benchmark/benchmark.h>

using namespace partita;

namespace {

constexpr int kMicroBatches = 1000;
constexpr int64_t kFloats = 16;

/// Arguments: devices, and whether events are recorded.
void unit(benchmark::State &state) {
  const int devices = int(state.range(0));
  const std::string path = test::temporary("units.partita");
  test::writeArtifact(path,
                      test::doublingPipeline(devices, kMicroBatches, kFloats),
                      test::testObjects());
  auto artifact = runtime::Artifact::open(path);
  if (!artifact)
    return state.SkipWithError(artifact.status().message().c_str());
  runtime::SessionOptions options;
  options.profile = state.range(1) != 0;
  auto session = runtime::Session::create(*artifact, options);
  if (!session)
    return state.SkipWithError(session.status().message().c_str());
  std::vector<float> x(kFloats * kMicroBatches, 1), y(x.size());
  runtime::StepBinding binding;
  binding.micro_batches = kMicroBatches;
  binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
  binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  for (auto _ : state)
    if (runtime::Status status = (*session)->run(binding); !status.ok())
      return state.SkipWithError(status.message().c_str());
  const double units = double(devices) * kMicroBatches;
  state.counters["ns_per_unit"] = benchmark::Counter(
      units * 1e-9, benchmark::Counter::kIsIterationInvariantRate |
                        benchmark::Counter::kInvert);
  std::remove(path.c_str());
}

} // namespace

BENCHMARK(unit)
    ->ArgNames({"devices", "profile"})
    ->Args({1, 0})
    ->Args({1, 1})
    ->Args({2, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();

//===- Sameness.cpp - What all processes must be told ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/train/Sameness.h"

#include "runtime/train/ContentHash.h"

#include <algorithm>
#include <sstream>

namespace partita::run {
namespace {

/// So many samples are compared. All would take an epoch.
constexpr int64_t kSamples = 64;

} // namespace

std::string flagsText(const Options &options) {
  const TrainingOptions &training = options.training;
  std::ostringstream text;
  text << training.epochs << ' ' << training.steps << ' ' << training.evalEvery
       << ' ' << training.reportEvery << ' ' << training.outputs << ' '
       << training.order << ' ' << training.seed << ' '
       << training.checkpointEvery << ' ' << training.keepBest << ' '
       << training.resume << training.allowChanges << training.evalData.empty()
       << training.checkpoint.empty() << training.load.empty()
       << training.exportTo.empty() << options.wantsProfile();
  return text.str();
}

runtime::Expected<std::string>
samplesText(const std::vector<data::LoaderInput> &inputs) {
  std::ostringstream text;
  for (const data::LoaderInput &input : inputs) {
    const data::Dataset &samples = *input.samples;
    text.precision(17);
    text << input.name << ' ' << samples.count() << ' '
         << static_cast<int>(samples.dtype()) << ' ' << input.scale.divide
         << ' ' << input.scale.mean << ' ' << input.scale.std;
    for (int64_t size : samples.sampleShape())
      text << ' ' << size;
    // The first, the last, and as many between them.
    std::vector<uint8_t> bytes(static_cast<size_t>(samples.sampleBytes()));
    runtime::train::ContentHasher hasher;
    const int64_t count = std::min(kSamples, samples.count());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t sample =
          count == 1 ? 0 : (samples.count() - 1) / (count - 1) * i;
      for (int64_t each : {sample, samples.count() - 1 - sample}) {
        if (auto status = samples.read(each, 1, bytes.data()); !status.ok())
          return status;
        hasher.add(bytes);
      }
    }
    text << ' ' << runtime::train::hashText(hasher.hash()) << '\n';
  }
  return text.str();
}

} // namespace partita::run

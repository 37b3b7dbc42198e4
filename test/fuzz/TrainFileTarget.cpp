//===- TrainFileTarget.cpp - Fuzzes the reader of files of --train --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "compiler/train/TrainFile.h"

#include <cmath>

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto settings = train::parseTrainFile(text);
  if (!settings) {
    fuzz::require(!llvm::toString(settings.takeError()).empty(),
                  "an error has a message");
    return 0;
  }
  if (settings->schedule) {
    const train::RateSchedule &schedule = *settings->schedule;
    fuzz::require(schedule.warmup >= 0 && schedule.steps >= 0 &&
                      schedule.every >= 0 && schedule.decay >= 0,
                  "steps are counted");
    fuzz::require(std::isfinite(schedule.final) &&
                      std::isfinite(schedule.factor),
                  "rates are numbers");
  }
  fuzz::require(!settings->microBatches || *settings->microBatches > 0,
                "a step has micro-batches");
  autodiff::AutodiffOptions autodiff;
  train::TrainOptions options;
  if (llvm::Error error = train::apply(*settings, autodiff, options))
    fuzz::require(!llvm::toString(std::move(error)).empty(),
                  "an error has a message");
  return 0;
}

//===- DatasetPromise.h - What holds of any dataset read --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_DATASETPROMISE_H
#define PARTITA_TEST_FUZZ_DATASETPROMISE_H

#include "test/fuzz/Target.h"

#include "runtime/data/Dataset.h"

#include <memory>
#include <vector>

namespace partita::fuzz {

/// Count and shape make sense, and every sample can be read.
inline void checkDataset(
    const runtime::Expected<std::shared_ptr<const data::Dataset>> &dataset) {
  if (!dataset) {
    require(!dataset.status().message().empty(), "an error has a message");
    return;
  }
  const data::Dataset &samples = **dataset;
  require(samples.count() >= 0, "a dataset has a number of samples");
  int64_t elements = 1;
  for (int64_t dim : samples.sampleShape())
    elements *= dim;
  require(elements == samples.sampleElements(), "a sample has its elements");
  // There may be billions of samples without elements, and none of billions.
  const int64_t read = samples.sampleBytes() > 0 ? samples.count() : 0;
  std::vector<uint8_t> sample(read > 0 ? size_t(samples.sampleBytes()) : 0);
  for (int64_t i = 0; i < read; ++i)
    require(samples.read(i, 1, sample.data()).ok(), "a sample can be read");
  require(!samples.read(samples.count(), 1, sample.data()).ok(),
          "there is nothing behind the last sample");
}

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_DATASETPROMISE_H

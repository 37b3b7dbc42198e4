//===- Dataset.cpp - Samples that can be read by number -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Dataset.h"

#include "runtime/io/Tensor.h"

namespace partita::data {

using runtime::Status;

namespace {

Status noSample(const Dataset &dataset, int64_t index) {
  return Status::error(dataset.name() + " has no sample " +
                       std::to_string(index) + ": it has " +
                       std::to_string(dataset.count()) + ", counted from 0");
}

} // namespace

Dataset::Dataset(std::string name, int64_t count, abi::DType dtype,
                 std::vector<int64_t> sampleShape)
    : called(std::move(name)), samples(count), type(dtype),
      shape(std::move(sampleShape)),
      elements(runtime::elementCount(shape).value_or(0)) {}

Status Dataset::read(int64_t first, int64_t count, uint8_t *destination) const {
  if (count < 0)
    return Status::error("cannot read " + std::to_string(count) +
                         " samples of " + called);
  if (first < 0 || first > samples)
    return noSample(*this, first);
  if (count > samples - first)
    return noSample(*this, samples);
  for (int64_t i = 0; i < count; ++i)
    PARTITA_TRY(copySample(first + i, destination + i * sampleBytes()));
  return Status();
}

} // namespace partita::data

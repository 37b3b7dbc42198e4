//===- Dataset.cpp - Samples that can be read by number -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Dataset.h"

#include <algorithm>
#include <cstring>

namespace partita::data {

using runtime::Expected;
using runtime::Status;

namespace {

Status noSample(const Dataset &dataset, int64_t index) {
  return Status::error(dataset.name() + " has no sample " +
                       std::to_string(index) + ": it has " +
                       std::to_string(dataset.count()) + ", counted from 0");
}

} // namespace

Dataset::Dataset(std::string name, Samples samples)
    : called(std::move(name)), all(std::move(samples)),
      elements(runtime::elementCount(all.shape).value_or(0)),
      turned(all.bigEndian ? runtime::elementBytes(all.dtype) : 1) {}

Status Dataset::read(int64_t first, int64_t count, uint8_t *destination) const {
  if (count < 0)
    return Status::error("cannot read " + std::to_string(count) +
                         " samples of " + called);
  if (first < 0 || first > all.count)
    return noSample(*this, first);
  if (count > all.count - first)
    return noSample(*this, all.count);
  for (int64_t i = 0; i < count; ++i)
    copySample(first + i, destination + i * sampleBytes());
  return Status();
}

void Dataset::copySample(int64_t index, uint8_t *destination) const {
  const size_t bytes = size_t(sampleBytes());
  if (bytes == 0)
    return;
  std::memcpy(destination, all.first + index * all.stride, bytes);
  if (turned > 1)
    for (uint8_t *at = destination; at < destination + bytes; at += turned)
      std::reverse(at, at + turned);
}

Expected<DatasetPointer> samplesOf(const runtime::Tensor &tensor,
                                   const std::string &name, bool bigEndian) {
  if (tensor.shape().empty())
    return Status::error("cannot take samples from " + name +
                         ": it is one number, and has no dimension of samples");
  // The first dimension counts samples; the others are theirs. The elements of
  // a tensor can be counted even if a dimension is 0.
  Samples samples;
  samples.first = tensor.data();
  samples.count = tensor.shape().front();
  samples.shape.assign(tensor.shape().begin() + 1, tensor.shape().end());
  samples.stride = samples.count ? tensor.bytes() / samples.count : 0;
  samples.dtype = tensor.dtype();
  samples.bigEndian = bigEndian;
  samples.owner = std::make_shared<runtime::Tensor>(tensor);
  return std::make_shared<const Dataset>(name, std::move(samples));
}

} // namespace partita::data

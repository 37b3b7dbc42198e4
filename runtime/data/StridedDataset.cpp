//===- StridedDataset.cpp - Samples at equal distances in memory ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/StridedDataset.h"

#include <algorithm>
#include <cstring>

namespace partita::data {

using runtime::Expected;
using runtime::Status;

StridedDataset::StridedDataset(std::string name, Samples samples)
    : Dataset(std::move(name), samples.count, samples.dtype,
              std::move(samples.shape)),
      first(samples.first), stride(samples.stride),
      turned(samples.bigEndian ? runtime::elementBytes(samples.dtype) : 1),
      owner(std::move(samples.owner)) {}

Status StridedDataset::copySample(int64_t index, uint8_t *destination) const {
  const size_t bytes = size_t(sampleBytes());
  if (bytes == 0)
    return Status();
  std::memcpy(destination, first + index * stride, bytes);
  if (turned > 1)
    for (uint8_t *at = destination; at < destination + bytes; at += turned)
      std::reverse(at, at + turned);
  return Status();
}

Expected<std::shared_ptr<const Dataset>>
samplesOf(const runtime::Tensor &tensor, const std::string &name) {
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
  samples.owner = std::make_shared<runtime::Tensor>(tensor);
  return std::shared_ptr<const Dataset>(
      std::make_shared<StridedDataset>(name, std::move(samples)));
}

} // namespace partita::data

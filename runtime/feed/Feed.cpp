//===- Feed.cpp - Samples cut into micro-batches --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Feed.h"

#include "runtime/abi/Text.h"
#include "runtime/feed/Layout.h"

#include "runtime/io/DType.h"

#include <algorithm>
#include <cstring>

namespace partita::feed {

using runtime::Expected;
using runtime::Status;
using runtime::StepBinding;
using runtime::Tensor;

namespace {

/// Where micro-batches `first` to `first + count` of a port lie one after
/// another in the tensor of all samples, bytes from its beginning; empty if
/// they do not, or if the last is not full.
std::optional<int64_t> placeInTensor(const Port &port, const Tensor &tensor,
                                     int64_t first, int count) {
  if (port.batchAxis < 0)
    return count == 1 || port.perStep ? std::optional<int64_t>(0)
                                      : std::nullopt;
  if (layoutOf(port).outer != 1 ||
      (first + count) * port.samples() > tensor.shape()[size_t(port.batchAxis)])
    return std::nullopt;
  return first * port.bytes();
}

} // namespace

Expected<Feed> Feed::create(const Model &model, const InputTensors &inputs,
                            const std::vector<int> &devices) {
  Feed feed;
  feed.ports = &model.inputs;
  feed.stepBatches = model.microBatches;
  const Port *first = nullptr; // the first with a batch axis
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const Port &port = model.inputs[i];
    PARTITA_TRY(checkInput(port, *inputs[i]));
    feed.tensors.push_back(*inputs[i]);
    feed.used.push_back(port.usedBy(devices) && port.bytes() > 0);
    if (port.batchAxis < 0)
      continue;
    int64_t given = inputs[i]->shape()[size_t(port.batchAxis)];
    if (!first) {
      first = &port;
      feed.total = given;
      feed.perBatch = port.samples();
    } else if (given * feed.perBatch != feed.total * port.samples()) {
      return Status::error(
          "the inputs '" + first->name + "' and '" + port.name +
          "' do not have the same number of samples: " +
          std::to_string(feed.total) + " and " + std::to_string(given) +
          (feed.perBatch == port.samples()
               ? ""
               : ", at " + std::to_string(feed.perBatch) + " and " +
                     std::to_string(port.samples()) + " a micro-batch"));
    }
  }
  if (Status status = model.checkSamples(feed.total); first && !status.ok())
    return status;
  feed.batches = (feed.total + feed.perBatch - 1) / feed.perBatch;
  for (auto &lane : feed.staging)
    lane.resize(model.inputs.size());
  return feed;
}

std::optional<int64_t> Feed::extent(const Port &port) const {
  int64_t scaled = total * port.samples();
  if (scaled % perBatch != 0)
    return std::nullopt;
  return scaled / perBatch;
}

void Feed::stage(size_t i, int64_t micro_batch, int place,
                 std::vector<uint8_t> &buffer) const {
  const Port &port = (*ports)[i];
  buffer.resize(size_t(port.bytes()) * size_t(stepBatches));
  uint8_t *to = buffer.data() + port.bytes() * place;
  const uint8_t *from = tensors[i].data();
  if (port.batchAxis < 0) {
    std::memcpy(to, from, size_t(port.bytes()));
    return;
  }
  const Layout layout = layoutOf(port);
  const int64_t samples = port.samples();
  const int64_t given = tensors[i].shape()[size_t(port.batchAxis)];
  const int64_t begin = micro_batch * samples;
  const int64_t count = std::min(samples, given - begin);
  copyEntries(layout, to, samples, 0, from, given, begin, count);
  for (int64_t s = count; s < samples; ++s)
    copyEntries(layout, to, samples, s, to, samples, count - 1, 1);
}

void Feed::bind(int64_t first, int count, int lane, StepBinding &binding) {
  binding.micro_batches = count;
  binding.inputs.assign(tensors.size(), nullptr);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!used[i])
      continue;
    std::optional<int64_t> place =
        placeInTensor((*ports)[i], tensors[i], first, count);
    std::vector<uint8_t> &buffer = staging[size_t(lane)][i];
    for (int m = 0; !place && m < count; ++m)
      stage(i, (first + m) % batches, m, buffer);
    binding.inputs[i] = place ? tensors[i].data() + *place : buffer.data();
  }
}

void Feed::fill(int64_t step, StepBinding &binding) {
  const int64_t first = step * stepBatches;
  bind(first, int(std::min<int64_t>(stepBatches, batches - first)),
       int(step % kLanes), binding);
}

void Feed::fillWhole(StepBinding &binding) { bind(0, stepBatches, 0, binding); }

Expected<Collector> Collector::create(const Model &model, const Feed &feed,
                                      const std::vector<int> &devices) {
  Collector collector;
  collector.ports = &model.outputs;
  collector.stepBatches = model.microBatches;
  for (const Port &port : model.outputs) {
    std::vector<int64_t> shape = port.shape;
    if (port.batchAxis >= 0) {
      std::optional<int64_t> extent = feed.extent(port);
      if (!extent)
        return Status::error("the output '" + port.name + "' has " +
                             std::to_string(port.samples()) +
                             " entries a micro-batch, which does not divide "
                             "for " +
                             abi::countOf(feed.samples(), "sample"));
      shape[size_t(port.batchAxis)] = *extent;
    } else if (port.perStep && feed.steps() > 1) {
      return Status::error(
          "the output '" + port.name +
          "' is one for each step, so the results of several steps cannot be "
          "joined: give exactly " +
          abi::countOf(model.samples() * model.microBatches, "sample"));
    } else if (!port.perStep && (feed.microBatches() > 1 || feed.partial())) {
      return Status::error(
          "the output '" + port.name +
          "' has no batch axis, so the results of several micro-batches cannot "
          "be joined: give exactly " +
          abi::countOf(model.samples(), "sample"));
    }
    collector.tensors.push_back(
        PARTITA_TRY(Tensor::allocate(port.dtype, shape)));
    collector.used.push_back(port.usedBy(devices) && port.bytes() > 0);
  }
  for (auto &lane : collector.staging)
    lane.resize(model.outputs.size());
  return collector;
}

void Collector::bind(int64_t step, int count, StepBinding &binding) {
  binding.outputs.assign(tensors.size(), nullptr);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!used[i])
      continue;
    const Port &port = (*ports)[i];
    if (std::optional<int64_t> place =
            placeInTensor(port, tensors[i], step * stepBatches, count)) {
      binding.outputs[i] = tensors[i].mutableData() + *place;
    } else {
      std::vector<uint8_t> &buffer = staging[size_t(step % Feed::kLanes)][i];
      buffer.resize(size_t(port.bytes()) * size_t(stepBatches));
      binding.outputs[i] = buffer.data();
    }
  }
}

void Collector::take(int64_t step, int count) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Port &port = (*ports)[i];
    if (!used[i] || placeInTensor(port, tensors[i], step * stepBatches, count))
      continue;
    // Only a port with a batch axis is staged: see `create`.
    const Layout layout = layoutOf(port);
    const int64_t samples = port.samples();
    const int64_t wanted = tensors[i].shape()[size_t(port.batchAxis)];
    for (int m = 0; m < count; ++m) {
      const int64_t begin = (step * stepBatches + m) * samples;
      const int64_t kept = std::min(samples, wanted - begin);
      if (kept > 0)
        copyEntries(layout, tensors[i].mutableData(), wanted, begin,
                    staging[size_t(step % Feed::kLanes)][i].data() +
                        port.bytes() * m,
                    samples, 0, kept);
    }
  }
}

} // namespace partita::feed

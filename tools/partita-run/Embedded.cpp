//===- Embedded.cpp - Samples through partita.h ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Embedded.h"

#include <algorithm>
#include <deque>

namespace partita::run {

using runtime::Expected;
using runtime::Status;

namespace {

/// Pieces that are submitted and not yet waited for.
constexpr size_t kUnderWay = 4;

Status lastError() { return Status::error(partita_last_error()); }

using Describe = partita_status (*)(const partita_model *, size_t,
                                    partita_port *);

Expected<std::vector<partita_port>> portsOf(const partita_model *model,
                                            size_t count, Describe describe) {
  std::vector<partita_port> ports(count);
  for (size_t i = 0; i < count; ++i) {
    ports[i].size = sizeof ports[i];
    if (describe(model, i, &ports[i]) != PARTITA_OK)
      return lastError();
  }
  return ports;
}

/// Whether its samples lie one after another in a tensor of many.
bool liesInRow(const partita_port &port) {
  return port.batch_axis >= 0 &&
         std::all_of(port.shape, port.shape + port.batch_axis,
                     [](int64_t size) { return size == 1; });
}

} // namespace

Expected<std::unique_ptr<Embedded>>
Embedded::open(const Model &model, const partita_options &options) {
  partita_model *opened = nullptr;
  if (partita_open(model.artifact->path().c_str(), &options, &opened) !=
      PARTITA_OK)
    return lastError();
  auto embedded = std::make_unique<Embedded>();
  embedded->model.reset(opened);
  return embedded;
}

Status Embedded::run(const InputTensors &inputs, int64_t samples,
                     std::vector<runtime::Tensor> &results,
                     Progress &progress) {
  auto in =
      portsOf(model.get(), partita_input_count(model.get()), partita_input);
  auto out =
      portsOf(model.get(), partita_output_count(model.get()), partita_output);
  if (!in || !out)
    return in ? out.status() : in.status();
  // A piece has the samples of a step, so that progress can be shown; or all,
  // if it could not be cut out of the tensors.
  const bool cut = std::all_of(in->begin(), in->end(), liesInRow) &&
                   std::all_of(out->begin(), out->end(), liesInRow);
  const int64_t piece = cut ? stepSamples() : samples;
  std::vector<const void *> from(in->size());
  std::vector<void *> to(out->size());
  struct Piece {
    uint64_t ticket = 0;
    int64_t begin = 0;
  };
  std::deque<Piece> underWay;
  int64_t done = 0;
  for (int64_t begin = 0; begin < samples || !underWay.empty();) {
    if (begin >= samples || underWay.size() == kUnderWay) {
      const Piece first = underWay.front();
      if (partita_wait(model.get(), first.ticket) != PARTITA_OK)
        // The model counts the samples of what it was given.
        return first.begin == 0
                   ? lastError()
                   : Status::error("after the first " +
                                   std::to_string(first.begin) +
                                   " samples: " + lastError().message());
      underWay.pop_front();
      progress.update(++done);
      continue;
    }
    for (size_t i = 0; i < in->size(); ++i)
      from[i] = inputs[i]->data() + begin * (*in)[i].bytes;
    for (size_t i = 0; i < out->size(); ++i)
      to[i] = results[i].mutableData() + begin * (*out)[i].bytes;
    uint64_t ticket = 0;
    if (partita_submit(model.get(), from.data(),
                       std::min(piece, samples - begin), to.data(),
                       &ticket) != PARTITA_OK)
      return lastError();
    underWay.push_back({ticket, begin});
    begin += piece;
  }
  return Status();
}

} // namespace partita::run

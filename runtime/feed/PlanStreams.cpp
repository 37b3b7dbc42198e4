//===- PlanStreams.cpp - Samples of several sizes -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/PlanStreams.h"

#include "runtime/base/Programs.h"
#include "runtime/base/StateParts.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace partita::feed {

using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

/// By device, the most that the arena of one of the plans has.
std::vector<size_t> largestArenas(const PlanChoice &plans) {
  std::vector<size_t> bytes(size_t(plans.model(0).devices), 0);
  for (size_t plan = 0; plan < plans.planCount(); ++plan)
    for (size_t device = 0; device < bytes.size(); ++device)
      bytes[device] = std::max(
          bytes[device],
          size_t(runtime::programOf(*plans.model(plan).plan, int(device))
                     .arena_bytes()));
  return bytes;
}

} // namespace

Expected<std::unique_ptr<PlanStreams>> PlanStreams::create(
    std::vector<std::shared_ptr<const runtime::Artifact>> artifacts,
    runtime::SessionOptions session, StreamOptions options) {
  std::unique_ptr<PlanStreams> self(new PlanStreams(std::move(artifacts)));
  const size_t plans = self->choice.planCount();
  if (plans > 1) {
    session.shared =
        std::make_shared<runtime::SharedDevices>(largestArenas(self->choice));
    session.lone_thread = true;
    options.devices_lock = std::make_shared<TicketLock>();
  }
  for (size_t plan = 0; plan < plans; ++plan) {
    Expected<std::unique_ptr<Stream>> stream =
        Stream::create(self->choice.model(plan), session, options);
    if (!stream)
      return stream.status();
    self->streams.push_back(std::move(*stream));
  }
  if (session.shared)
    session.shared->releaseUnread();
  return self;
}

bool PlanStreams::keepsNan() const {
  return std::any_of(streams.begin(), streams.end(),
                     [](const auto &stream) { return stream->keepsNan(); });
}

std::string PlanStreams::remark() const {
  std::vector<std::string> lines;
  for (const auto &stream : streams) {
    std::istringstream text(stream->remark());
    for (std::string line; std::getline(text, line);)
      if (std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(line);
  }
  std::string all;
  for (const std::string &line : lines)
    all += (all.empty() ? "" : "\n") + line;
  return all;
}

Expected<uint64_t> PlanStreams::submit(const std::vector<int64_t> &sizes,
                                       const std::vector<Tensor> &inputs,
                                       const std::vector<uint8_t *> &outputs) {
  Expected<PlanChoice::Choice> chosen = choice.choose(sizes);
  if (!chosen)
    return chosen.status();
  Stream &stream = *streams[chosen->plan];
  auto numbered = [&](uint64_t ticket) {
    return ticket * streams.size() + chosen->plan;
  };
  if (!chosen->padded) {
    Expected<uint64_t> ticket = stream.submit(inputs, outputs);
    return ticket ? Expected<uint64_t>(numbered(*ticket)) : ticket;
  }
  const size_t places = choice.model(chosen->plan).outputs.size();
  if (outputs.size() != places ||
      std::count(outputs.begin(), outputs.end(), nullptr) != 0)
    return Status::error("there is not a place for each of the " +
                         std::to_string(places) + " outputs");
  std::vector<Tensor> whole;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Expected<Tensor> input = choice.pad(*chosen, i, inputs[i]);
    if (!input)
      return input.status();
    whole.push_back(std::move(*input));
  }
  Expected<uint64_t> ticket = stream.submit(whole);
  if (!ticket)
    return ticket;
  std::lock_guard<std::mutex> lock(mutex);
  padded.emplace(numbered(*ticket), Padded{*chosen, outputs});
  return numbered(*ticket);
}

Status PlanStreams::wait(uint64_t ticket) {
  Stream &stream = *streams[ticket % streams.size()];
  Expected<Stream::Answer> answer = stream.wait(ticket / streams.size());
  Padded mine;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = padded.find(ticket);
    if (found == padded.end())
      return answer.status();
    mine = std::move(found->second);
    padded.erase(found);
  }
  if (!answer)
    return answer.status();
  for (size_t i = 0; i < mine.outputs.size(); ++i) {
    Expected<Tensor> output = choice.cut(mine.choice, i, answer->outputs[i]);
    if (!output)
      return output.status();
    if (output->bytes())
      std::memcpy(mine.outputs[i], output->data(), size_t(output->bytes()));
  }
  return Status();
}

/// How many places a plan's rings of a state have: one for each micro-batch.
static size_t placesOf(const abi::Plan &plan, const abi::State &ring) {
  return size_t(runtime::stepBytes(
             plan, *plan.states()->Get(unsigned(ring.ring_place())))) /
         sizeof(int64_t);
}

Status PlanStreams::readState(int64_t state, void *to) {
  const abi::Plan &plan = *choice.model(choice.largest()).plan;
  const abi::State &table = *plan.states()->Get(unsigned(state));
  return streams[choice.largest()]->whenIdle([&](runtime::Session &session) {
    Status status = session.readState(static_cast<int>(state), to);
    if (!status.ok() || table.ring_place() < 0)
      return status;
    std::vector<int64_t> places(placesOf(plan, table));
    status = session.readState(table.ring_place(), places.data());
    if (status.ok())
      runtime::orderRing(plan, table, places.data(),
                         static_cast<uint8_t *>(to));
    return status;
  });
}

Status PlanStreams::writeState(int64_t state, const void *from) {
  const abi::Plan &plan = *choice.model(choice.largest()).plan;
  const abi::State &table = *plan.states()->Get(unsigned(state));
  return streams[choice.largest()]->whenIdle([&](runtime::Session &session) {
    Status status = session.writeState(static_cast<int>(state), from);
    if (!status.ok() || table.ring_place() < 0)
      return status;
    // Its entries are in their order.
    const std::vector<int64_t> zeros(placesOf(plan, table));
    return session.writeState(table.ring_place(), zeros.data());
  });
}

Status PlanStreams::resetStates() {
  const abi::Plan &plan = *choice.model(choice.largest()).plan;
  const auto *states = plan.states();
  return streams[choice.largest()]->whenIdle([&](runtime::Session &session) {
    std::vector<uint8_t> zeros;
    for (int64_t i = 0; i < runtime::length(states); ++i) {
      zeros.resize(std::max(
          zeros.size(),
          size_t(runtime::stepBytes(plan, *states->Get(unsigned(i))))));
      if (Status status = session.writeState(int(i), zeros.data());
          !status.ok())
        return status;
    }
    return Status();
  });
}

} // namespace partita::feed

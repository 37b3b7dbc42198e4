//===- PlanStreams.cpp - Samples of several sizes -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/PlanStreams.h"

#include "runtime/abi/Text.h"
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
  for (size_t plan = 0; plan < plans.planCount(); ++plan) {
    std::vector<const Model *> all = plans.ofSeveral(plan);
    all.push_back(&plans.model(plan));
    for (const Model *model : all)
      for (size_t device = 0; device < bytes.size(); ++device)
        bytes[device] = std::max(
            bytes[device],
            size_t(
                runtime::programOf(*model->plan, int(device)).arena_bytes()));
  }
  return bytes;
}

} // namespace

Expected<std::unique_ptr<PlanStreams>> PlanStreams::create(
    std::vector<std::shared_ptr<const runtime::Artifact>> artifacts,
    runtime::SessionOptions session, StreamOptions options) {
  std::unique_ptr<PlanStreams> self(new PlanStreams(std::move(artifacts)));
  const size_t plans = self->choice.planCount();
  bool are_several = plans > 1;
  for (size_t plan = 0; plan < plans; ++plan)
    are_several |= !self->choice.ofSeveral(plan).empty();
  if (are_several) {
    session.shared =
        std::make_shared<runtime::SharedDevices>(largestArenas(self->choice));
    session.lone_thread = true;
  }
  if (plans > 1)
    options.devices_lock = std::make_shared<TicketLock>();
  for (size_t plan = 0; plan < plans; ++plan)
    self->streams.push_back(
        PARTITA_TRY(Stream::create(self->choice.model(plan), session, options,
                                   self->choice.ofSeveral(plan))));
  self->begins.resize(size_t(self->choice.model(0).plan->sequences()));
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
                                       const std::vector<uint8_t *> &outputs,
                                       int sequence) {
  PARTITA_TRY(checkSequence(sequence));
  PlanChoice::Choice chosen = PARTITA_TRY(choice.choose(sizes));
  Stream &stream = *streams[chosen.plan];
  auto numbered = [&](uint64_t ticket) {
    return ticket * streams.size() + chosen.plan;
  };
  if (!chosen.padded) {
    return numbered(
        PARTITA_TRY(submit(chosen.plan, inputs, outputs, sequence)));
  }
  const size_t places = choice.model(chosen.plan).outputs.size();
  if (outputs.size() != places ||
      std::count(outputs.begin(), outputs.end(), nullptr) != 0)
    return Status::error("there is not a place for each of the " +
                         std::to_string(places) + " outputs");
  std::vector<Tensor> whole;
  for (size_t i = 0; i < inputs.size(); ++i)
    whole.push_back(PARTITA_TRY(choice.pad(chosen, i, inputs[i])));
  const uint64_t ticket = PARTITA_TRY(stream.submit(whole));
  std::lock_guard<std::mutex> lock(mutex);
  padded.emplace(numbered(ticket), Padded{chosen, outputs});
  return numbered(ticket);
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
    Tensor output = PARTITA_TRY(choice.cut(mine.choice, i, answer->outputs[i]));
    if (output.bytes())
      std::memcpy(mine.outputs[i], output.data(), size_t(output.bytes()));
  }
  return Status();
}

/// How many numbers say where a plan's rings of a state begin.
static size_t placesOf(const abi::Plan &plan, const abi::State &ring) {
  return size_t(runtime::stepBytes(
             plan, *plan.states()->Get(unsigned(ring.ring_place())))) /
         sizeof(int64_t);
}

Status PlanStreams::checkSequence(int sequence) const {
  if (sequence >= 0 && sequence < sequences())
    return Status();
  return Status::error("there is no sequence " + std::to_string(sequence) +
                       ": the model was compiled for " +
                       abi::countOf(sequences(), "sequence") +
                       " (partita-compile --sequences)");
}

/// What is refused does not begin a sequence.
Expected<uint64_t> PlanStreams::submit(size_t plan,
                                       const std::vector<Tensor> &inputs,
                                       const std::vector<uint8_t *> &outputs,
                                       int sequence) {
  auto mark = [&](bool is_new) {
    std::lock_guard<std::mutex> lock(mutex);
    const bool was = begins[size_t(sequence)];
    begins[size_t(sequence)] = is_new;
    return was;
  };
  const bool is_new = mark(false);
  Expected<uint64_t> ticket =
      streams[plan]->submit(inputs, outputs, sequence, is_new);
  if (!ticket && is_new)
    mark(true);
  return ticket;
}

Status PlanStreams::readState(int64_t state, void *to, int sequence) {
  PARTITA_TRY(checkSequence(sequence));
  const abi::Plan &plan = *choice.model(choice.largest()).plan;
  const abi::State &table = *plan.states()->Get(unsigned(state));
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (begins[size_t(sequence)]) {
      std::memset(to, 0, size_t(runtime::stepBytes(plan, table)));
      return Status();
    }
  }
  return streams[choice.largest()]->whenIdle([&](runtime::Session &session) {
    Status status = session.readState(static_cast<int>(state), to, sequence);
    if (!status.ok() || table.ring_place() < 0)
      return status;
    std::vector<int64_t> places(placesOf(plan, table));
    status = session.readState(table.ring_place(), places.data(), sequence);
    if (status.ok())
      runtime::orderRing(plan, table, places.data(),
                         static_cast<uint8_t *>(to));
    return status;
  });
}

Status PlanStreams::writeState(int64_t state, const void *from, int sequence) {
  PARTITA_TRY(checkSequence(sequence));
  const abi::Plan &plan = *choice.model(choice.largest()).plan;
  return streams[choice.largest()]->whenIdle([&](runtime::Session &session) {
    auto write = [&](int64_t number, const void *bytes) {
      return session.writeState(static_cast<int>(number), bytes, sequence);
    };
    std::vector<uint8_t> zeros;
    auto clear = [&](int64_t number) {
      zeros.assign(size_t(runtime::stepBytes(
                       plan, *plan.states()->Get(unsigned(number)))),
                   0);
      return write(number, zeros.data());
    };
    // A sequence that begins has zeros in all other states.
    bool is_new;
    {
      std::lock_guard<std::mutex> lock(mutex);
      is_new = begins[size_t(sequence)];
      begins[size_t(sequence)] = false;
    }
    for (int64_t i = 0; is_new && i < runtime::length(plan.states()); ++i)
      PARTITA_TRY(clear(i));
    // The entries of a ring come in their order.
    const int place = plan.states()->Get(unsigned(state))->ring_place();
    PARTITA_TRY(place < 0 ? Status() : clear(place));
    return write(state, from);
  });
}

Status PlanStreams::reset(int sequence) {
  PARTITA_TRY(checkSequence(sequence));
  std::lock_guard<std::mutex> lock(mutex);
  begins[size_t(sequence)] = true;
  return Status();
}

} // namespace partita::feed

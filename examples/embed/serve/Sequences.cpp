//===- Sequences.cpp - Which client goes on from which states -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sequences.h"

Sequences::Sequences(Model &model, double idle_s) : model(model), idle(idle_s) {
  for (int number = model.sequences(); model.hasStates() && number-- > 0;)
    unused.push_back(number);
}

std::unique_ptr<Sequences::Lease> Sequences::take(const Samples &samples) {
  if (!model.hasStates())
    return nullptr;
  if (!samples.sequence)
    throw WrongRequest(
        "the model goes on from what a sequence has left: give "
        "\"parameters\": {\"sequence_id\": ..., \"sequence_start\": true}, "
        "and the same sequence_id in the requests that follow");
  const std::string &id = *samples.sequence;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = slots.find(id);
  if (found != slots.end() && found->second.busy)
    throw WrongRequest("a request of the sequence '" + id +
                       "' is being computed: wait for its answer");
  if (found == slots.end() && !samples.starts)
    throw WrongRequest("the sequence '" + id +
                       "' has not begun, or has ended: give sequence_start");
  if (found == slots.end()) {
    if (unused.empty())
      makeRoom();
    found = slots.emplace(id, Slot{unused.back(), true, {}}).first;
    unused.pop_back();
  }
  found->second.busy = true;
  if (samples.starts)
    model.reset(found->second.number);
  return std::make_unique<Lease>(*this, id, found->second.number, samples.ends);
}

/// Ends the sequence whose client has not asked for the longest time.
void Sequences::makeRoom() {
  auto oldest = slots.end();
  for (auto slot = slots.begin(); slot != slots.end(); ++slot)
    if (!slot->second.busy &&
        (oldest == slots.end() || slot->second.since < oldest->second.since))
      oldest = slot;
  if (oldest == slots.end() || Clock::now() - oldest->second.since < idle)
    throw NoRoom("all " + std::to_string(slots.size()) +
                 " sequences are taken: come again when one has ended");
  unused.push_back(oldest->second.number);
  slots.erase(oldest);
}

void Sequences::giveBack(const std::string &id, bool ends) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = slots.find(id);
  found->second.busy = false;
  found->second.since = Clock::now();
  if (!ends)
    return;
  unused.push_back(found->second.number);
  slots.erase(found);
}

size_t Sequences::taken() const {
  std::lock_guard<std::mutex> lock(mutex);
  return slots.size();
}

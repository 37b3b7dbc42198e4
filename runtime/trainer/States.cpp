//===- States.cpp - What a trainer has learned, on the host ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/States.h"

#include "runtime/base/Elements.h"

namespace partita::runtime::train {

std::string nameOf(const abi::State &state) { return text(state.name()); }

std::vector<int64_t> shapeOf(const abi::State &state) {
  return state.shape() ? std::vector<int64_t>(state.shape()->begin(),
                                              state.shape()->end())
                       : std::vector<int64_t>();
}

size_t bytesOf(const abi::State &state) {
  return static_cast<size_t>(elementCount(state.shape()) *
                             elementBytes(state.dtype()));
}

bool fits(const abi::State &state, const Tensor &tensor) {
  return tensor.dtype() == state.dtype() && tensor.shape() == shapeOf(state);
}

namespace {

/// Instead of a state that process 0 wants.
constexpr int64_t kNoMore = -1;

template <typename T> std::span<uint8_t> spanOf(T &value) {
  return {reinterpret_cast<uint8_t *>(&value), sizeof value};
}

/// Sends process 0 the states for which it asks, until it wants no more.
void handOut(const Trainer &trainer, Processes &all) {
  std::vector<uint8_t> bytes;
  while (true) {
    int64_t wanted = kNoMore;
    all.receive(0, spanOf(wanted));
    if (wanted == kNoMore)
      return;
    bytes.resize(bytesOf(trainer.state(wanted)));
    if (Status status = trainer.readState(wanted, bytes.data()); !status.ok())
      all.abandon(status);
    all.send(0, bytes);
  }
}

} // namespace

Expected<Content::Bytes> StateReader::read(int64_t index) {
  bytes.resize(bytesOf(trainer.state(index)));
  if (trainer.statePlaces().isHere(index)) {
    if (Status status = trainer.readState(index, bytes.data()); !status.ok())
      return status;
  } else {
    const int owner = trainer.statePlaces().owner(index);
    trainer.processes()->send(owner, spanOf(index));
    trainer.processes()->receive(owner, bytes);
  }
  return Content::Bytes(bytes);
}

Status readStates(const Trainer &trainer,
                  const std::function<Status(StateReader &)> &use) {
  if (Status status = trainer.lostStates(); !status.ok())
    return status;
  Processes *all = trainer.processes();
  Status status;
  if (isFirst(all)) {
    StateReader reader(trainer);
    status = use(reader);
    int64_t wanted = kNoMore;
    for (int other = 1; all && other < all->count(); ++other)
      all->send(other, spanOf(wanted));
  } else {
    handOut(trainer, *all);
  }
  return agree(all, status);
}

Status writeStates(Trainer &trainer, const std::vector<StateChange> &changes) {
  for (const StateChange &change : changes) {
    if (!trainer.statePlaces().isHere(change.index))
      continue;
    if (Status status = trainer.writeState(change.index, change.tensor->data());
        !status.ok())
      return status;
  }
  return Status();
}

} // namespace partita::runtime::train

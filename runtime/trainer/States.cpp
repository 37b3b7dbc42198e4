//===- States.cpp - What a trainer has learned, on the host ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/States.h"

#include "runtime/base/Slots.h"

namespace partita::runtime::train {

std::string nameOf(const abi::State &state) { return text(state.name()); }

std::vector<int64_t> shapeOf(const abi::State &state) {
  return state.shape() ? std::vector<int64_t>(state.shape()->begin(),
                                              state.shape()->end())
                       : std::vector<int64_t>();
}

bool fits(const abi::State &state, const Tensor &tensor) {
  return tensor.dtype() == state.dtype() && tensor.shape() == shapeOf(state);
}

Expected<std::vector<Tensor>> readStates(const Trainer &trainer) {
  if (Status status = trainer.lostStates(); !status.ok())
    return status;
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < trainer.stateCount(); ++i) {
    auto made =
        Tensor::allocate(trainer.state(i).dtype(), shapeOf(trainer.state(i)));
    if (!made)
      return made.status();
    if (Status status = trainer.readState(i, made->mutableData()); !status.ok())
      return status;
    tensors.push_back(std::move(*made));
  }
  return tensors;
}

Status writeStates(Trainer &trainer, const std::vector<StateChange> &changes) {
  for (const StateChange &change : changes)
    if (Status status = trainer.writeState(change.index, change.tensor->data());
        !status.ok())
      return status;
  return Status();
}

} // namespace partita::runtime::train

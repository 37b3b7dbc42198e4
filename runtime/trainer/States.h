//===- States.h - What a trainer has learned, on the host -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_STATES_H
#define PARTITA_RUNTIME_TRAINER_STATES_H

#include "runtime/io/Tensor.h"
#include "runtime/trainer/Trainer.h"

#include <string>
#include <vector>

namespace partita::runtime::train {

std::string nameOf(const abi::State &state);
std::vector<int64_t> shapeOf(const abi::State &state);

/// Whether the tensor has the state's type and shape.
bool fits(const abi::State &state, const Tensor &tensor);

/// Copies of all states, in the trainer's order. Fails if they are lost.
Expected<std::vector<Tensor>> readStates(const Trainer &trainer);

/// A state and what it is to become.
struct StateChange {
  int64_t index = 0;
  const Tensor *tensor = nullptr; ///< that fits
};

/// To be called when it is known that all of them fit: an error leaves some
/// states changed, and others not.
Status writeStates(Trainer &trainer, const std::vector<StateChange> &changes);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_STATES_H

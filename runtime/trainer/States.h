//===- States.h - What a trainer has learned, on the host -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_STATES_H
#define PARTITA_RUNTIME_TRAINER_STATES_H

#include "runtime/io/Tensor.h"
#include "runtime/train/Content.h"
#include "runtime/trainer/Trainer.h"

#include <functional>
#include <string>
#include <vector>

namespace partita::runtime::train {

std::string nameOf(const abi::State &state);
size_t bytesOf(const abi::State &state);

/// Whether the tensor has the state's type and shape.
bool fits(const abi::State &state, const Tensor &tensor);

/// Copies states to the host, one after another, from whichever process has
/// them.
class StateReader {
public:
  explicit StateReader(const Trainer &trainer) : trainer(trainer) {}

  /// The elements of a state, dense and row-major, until the next is read.
  Expected<Content::Bytes> read(int64_t index);

private:
  void takeParts(int64_t index, int owner);

  const Trainer &trainer;
  std::vector<uint8_t> bytes, others;
};

/// Calls `use` in process 0, where it may read all states meanwhile. All
/// processes get the error that it returns. Fails if the states are lost.
Status readStates(const Trainer &trainer,
                  const std::function<Status(StateReader &)> &use);

/// A state and what it is to become.
struct StateChange {
  int64_t index = 0;
  const Tensor *tensor = nullptr; ///< that fits
};

/// Writes those that are in this process. To be called when it is known that
/// all of them fit: an error leaves some states changed, and others not.
Status writeStates(Trainer &trainer, const std::vector<StateChange> &changes);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_STATES_H

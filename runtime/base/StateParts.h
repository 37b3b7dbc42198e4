//===- StateParts.h - What each device has of a state -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state may be cut over devices (abi::Cut). A device has a tensor of the
// state's rank, with its part of each dimension that is cut. Where a part goes
// beyond the end of what is cut, it holds 0.
//
// What the model itself leaves for the next step (abi::StateRole::carried) each
// micro-batch of a step has of its own. For the user these are one tensor, in
// their order along dimension 0. A device has those of the micro-batches that
// it computes. A plan may be for several sequences (Plan.sequences); each has
// such tensors of its own, and a step is of one of them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_STATEPARTS_H
#define PARTITA_RUNTIME_BASE_STATEPARTS_H

#include "runtime/abi/plan_generated.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace partita::runtime {

/// Whether devices have parts of a state.
bool isCut(const abi::State &state);

/// Bytes of what a device has of a state, in a plan that was verified.
int64_t partBytes(const abi::State &state);

/// How far the copies of a state are apart on a device. Those of several
/// sequences lie so for steps of each of them, and of some (isOfSeveral).
size_t stateStride(const abi::State &state);

/// How many of a state a device has for a sequence.
int copiesOf(const abi::Plan &plan, const abi::State &state);

/// What a device runs for micro-batch m of sequence s it knows as micro-batch
/// `s * sequenceStride + m`. Which copies of frames that has does not depend on
/// the sequence.
int sequenceStride(const abi::Plan &plan, const abi::Program &program);
/// The copies of a state that such micro-batches have, by their number.
std::vector<size_t> stateCopies(const abi::Plan &plan,
                                const abi::Program &program,
                                const abi::State &state);
/// How many of a state a device has for all sequences.
size_t countStateCopies(const abi::Plan &plan, const abi::State &state);

/// The tensor of all micro-batches of a sequence: its shape, and bytes.
std::vector<int64_t> stepShape(const abi::Plan &plan, const abi::State &state);
int64_t stepBytes(const abi::Plan &plan, const abi::State &state);

/// The states of a plan that its users know: not those that say where rings
/// begin. Positions in Plan.states.
std::vector<int64_t> shownStates(const abi::Plan &plan);

/// Brings the entries of a ring (State.ring_dim) into their order, in a plan
/// that was verified, for a step of one sequence. `whole`: the tensor of all
/// micro-batches; `places`: of the state that says where the rings begin,
/// likewise.
void orderRing(const abi::Plan &plan, const abi::State &state,
               const int64_t *places, uint8_t *whole);

/// Whether a step of `several` may stand for Plan.step_sequences steps of
/// `one`: samples of each follow one another in its inputs and outputs, and
/// both have as many sequences.
bool isOfSeveral(const abi::Plan &several, const abi::Plan &one);

/// Why a state is not cut in a way that the plan's mesh has, or "". Its shape
/// must have been verified.
std::string cutsError(const abi::Plan &plan, const abi::State &state);

/// What a device has of a state, within the whole.
class StatePart {
public:
  StatePart(const abi::Plan &plan, const abi::State &state, int device);

  /// Bytes of the part.
  size_t bytes() const { return part_bytes; }
  /// Takes the part from the whole tensor. All its bytes are written.
  void take(const uint8_t *whole, uint8_t *part) const;
  /// Puts the part into the whole tensor. Other bytes of it stay as they are.
  void put(const uint8_t *part, uint8_t *whole) const;

private:
  template <typename Visit> void forEachRow(Visit visit) const;

  size_t element = 0, part_bytes = 0;
  std::vector<int64_t> whole_strides, part_strides; ///< in elements
  /// By dimension and index in the part: the index in the whole; -1: beyond the
  /// end.
  std::vector<std::vector<int64_t>> places;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_STATEPARTS_H

//===- ScheduleCheck.h - Proof that a schedule cannot deadlock --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes the programs of all devices symbolically. The compiler
// (`--plan-verify-schedule`) and the runtime (which trusts no file) share this.
// It is plain C++ without dependencies.
//
// Model. Every device runs its own actions in order. `send` does not block.
// `recv` of (channel, micro-batch) blocks until the send with the same key has
// been issued. `wait` blocks until the `release` with that key has been
// executed, or the recv if there is no release. No action has a choice, so
// execution is confluent: whether all programs finish does not depend on
// timing. So one symbolic run is a proof. A runtime that lets the sender go on
// earlier only removes waits. If a run gets stuck, the reason is the shortest
// cycle of "waits for" among the blocked actions.
//
// Buffers. A device's actions are in one total order. The only readers that
// outlive their action are sends, until their `wait`. So it is enough to walk
// each program. An action may read a byte only if the last write to it came
// from the value that it is meant to read. It may write a byte only if no send
// of it is outstanding. A received value is gone after its release, except for
// bytes that were written since. A program runs again and again, so it is
// walked twice. A value is a slot on a micro-batch. A constant is the same
// value on all micro-batches, and what has the span of a step on all of a step.
//
// Training. A sum over micro-batches is told by how many have been added. A
// unit that only writes it makes it 0. One that reads it, and writes what it
// has made of it, adds its micro-batch, which must be the next one. What only
// reads it needs all of them. Of a sum in a frame each copy is a sum of its
// own, a lane, to which the micro-batches add that have this copy; a slot of
// the arena may name one. What has the span of a step is written once, by one
// unit. A state has one value until an action writes it, once. Afterwards it
// has the new one, for the next step, which slots have that are renewed: no
// other reads it then, and none of these before. One that is carried is as many
// states as there are micro-batches. Each device has a state of its
// own, so nobody else uses one that is written. A collective may read one,
// until it is finished; no other message reads or writes one.
//
// Size. The instructions of a unit are examined once for each combination of
// frame copies that it uses. The result is a summary: the values that they read
// from outside, and those that they leave behind. A program is walked from
// summary to summary. So the proof is linear in instructions and in actions,
// not in their product.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_SCHEDULECHECK_H
#define PARTITA_RUNTIME_ABI_SCHEDULECHECK_H

#include "runtime/abi/Actions.h"
#include "runtime/abi/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

/// Returns from a function what a check says is wrong; "" says that nothing is.
#define PARTITA_RETURN_ERROR(...)                                              \
  do                                                                           \
    if (std::string partita_error = (__VA_ARGS__); !partita_error.empty())     \
      return partita_error;                                                    \
  while (false)

namespace partita::abi {

/// Bytes of which each micro-batch in flight has its own copy.
struct CheckedFrame {
  int64_t bytes = 0;
  /// The offsets of its copies in the arena. Micro-batch m uses copy m modulo
  /// their number.
  std::vector<int64_t> copies;
};

struct CheckedSlot {
  Space space = Space::arena;
  int frame = -1;
  int64_t offset = 0, bytes = 0;
  Span span = Span::micro_batch;
  /// Of a lane: the sum, in a frame, of which it is copy `lane`.
  int sum = -1;
  int lane = 0;
  /// Slots that lie within this one, and that a collective adds up at once.
  std::vector<int> members;
  /// Of a state: it has the new value.
  bool renewed = false;
  /// Of a state: each micro-batch has one of its own.
  bool carried = false;
};

/// Bytes of a slot: [begin, end), from the slot's begin.
struct CheckedUse {
  int slot = -1;
  int64_t begin = 0, end = 0;
};

/// An instruction reads all its operands before it writes.
struct CheckedInstruction {
  std::string name; ///< for messages, e.g. "F1: conv3"
  std::vector<CheckedUse> reads, writes;
};

using CheckedUnit = std::vector<CheckedInstruction>;

/// What one device executes.
struct CheckedProgram {
  std::string device; ///< for messages, e.g. "cpu:0"
  /// Of a step. 0: as many as `actions` name.
  int micro_batches = 0;
  int64_t arena_bytes = 0, constant_bytes = 0;
  std::vector<CheckedFrame> frames;
  std::vector<CheckedSlot> slots;
  CheckedUnit load; ///< runs once, before the actions
  std::vector<CheckedUnit> units;
  std::vector<ProgramAction> actions;
};

/// Names of the subjects of actions, for messages.
struct CheckedNames {
  std::vector<std::string> channels, inputs, outputs, collectives, checks;
};

// Collectives. The devices of a group execute the same program, so they reach
// the same collectives in the same order. So one program represents all of its
// devices, and `start` and `finish` never wait for another program. Between
// `start` and `finish` the slot of the `start` may be read, and the slot of the
// `finish` may be written, at any time.

/// Returns an empty string if the programs of all devices finish and use their
/// buffers correctly. Otherwise it returns one message: the shortest cycle of
/// waits (a line per action after the first line), a send or recv without its
/// counterpart, or the first wrong read or write. Each (channel, micro-batch)
/// must have exactly one send and one recv. It must have one wait, after the
/// send and on its device. It may have one release, after the recv and on its
/// device. Each start of a collective must have one finish after it, and each
/// collective that has a name a start. The caller has checked that all indices
/// are in range, that each frame has a copy, and that a lane lies where its sum
/// does.
std::string checkSchedule(const std::vector<CheckedProgram> &programs,
                          const CheckedNames &names = {});

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_SCHEDULECHECK_H

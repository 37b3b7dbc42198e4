//===- ScheduleCheck.h - Proof that a schedule cannot deadlock --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes the programs of all devices symbolically. Shared by the compiler
// (`--plan-verify-schedule`) and the runtime (which trusts no file). Plain C++,
// no dependency.
//
// Model. Every device runs its own steps in order. `send` does not block;
// `recv` of (channel, micro-batch) blocks until the send with the same key has
// been issued; `wait` blocks until the `release` with that key, or the recv if
// there is none, has been executed. Because no step has a choice, execution is
// confluent: whether all programs finish does not depend on timing, so one
// symbolic run is a proof. A runtime that lets the sender go on earlier only
// takes waits away. If a run gets stuck, the shortest cycle of "waits for"
// among the blocked steps is the reason.
//
// Buffers. A device's steps are in one total order and the only readers that
// outlive their step are sends, until their `wait`. So it is enough to walk
// each program once: a step may read a byte only if the last write to it came
// from the value it means to read, and may write a byte only if no send of it
// is outstanding. What was received is gone with its release, except for bytes
// that were written since. A program runs again and again, so it is walked
// twice. A value is a slot on a micro-batch; a constant is the same value on
// all of them.
//
// Size. The instructions of a unit are looked at once for each combination of
// the frames' copies that it meets. What they read from outside and leave
// behind is a summary, and programs are walked from summary to summary. So the
// proof is linear in instructions and in steps, not in their product.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_SCHEDULECHECK_H
#define PARTITA_RUNTIME_ABI_SCHEDULECHECK_H

#include "runtime/abi/Steps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita::abi {

/// Bytes of which each micro-batch in flight has its own.
struct CheckedFrame {
  int64_t bytes = 0;
  /// Where its copies begin in the arena. On micro-batch m it is copy m modulo
  /// their number.
  std::vector<int64_t> copies;
};

struct CheckedSlot {
  enum class Space {
    arena,    ///< of the arena
    frame,    ///< of a frame
    constant, ///< of the constant region
    outside   ///< of no memory that a program writes, e.g. a weight
  };
  Space space = Space::arena;
  int frame = -1;
  int64_t offset = 0, bytes = 0;
};

/// Bytes of a slot: [begin, end), from the slot's begin.
struct CheckedUse {
  int slot = -1;
  int64_t begin = 0, end = 0;
};

/// Everything it reads, it reads before it writes.
struct CheckedInstruction {
  std::string name; ///< for messages, e.g. "F1: conv3"
  std::vector<CheckedUse> reads, writes;
};

using CheckedUnit = std::vector<CheckedInstruction>;

/// What one device executes.
struct CheckedProgram {
  std::string device; ///< for messages, e.g. "cpu:0"
  int64_t arena_bytes = 0, constant_bytes = 0;
  std::vector<CheckedFrame> frames;
  std::vector<CheckedSlot> slots;
  CheckedUnit load; ///< runs once, before the steps
  std::vector<CheckedUnit> units;
  std::vector<ProgramStep> steps;
};

/// For messages: names of what the subjects of steps are.
struct CheckedNames {
  std::vector<std::string> channels, inputs, outputs, collectives;
};

// Collectives. The devices of a group execute the same program, so each of them
// comes to the same collectives in the same order, and a program stands for all
// of its devices: `start` and `finish` never wait for another program. Between
// them the slot of the one is read, and that of the other written, at any time.

/// Returns an empty string if the programs of all devices finish and use their
/// buffers rightly; otherwise one message in plain words: the shortest cycle of
/// waits (one line a step after the first line), a send or recv without its
/// other side, or the first wrong read or write. Each (channel, micro-batch)
/// must have exactly one send, one recv, one wait after the send and on its
/// device, and at most one release, after the recv and on its device. Each
/// start of a collective must have one finish after it.
/// All indices must be in range, and frames have a copy.
std::string checkSchedule(const std::vector<CheckedProgram> &programs,
                          const CheckedNames &names = {});

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_SCHEDULECHECK_H

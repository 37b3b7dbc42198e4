//===- ScheduleCheck.h - Proof that a schedule cannot deadlock ----*- C++
//-*-===//
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
// twice.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_SCHEDULECHECK_H
#define PARTITA_RUNTIME_ABI_SCHEDULECHECK_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita::abi {

/// A byte range of one device's arena that holds one value: [begin, end).
/// `value` identifies the value: a read of a range is right only if the last
/// writer of all of its bytes wrote the same `value`.
struct CheckedRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t value = 0;
};

struct CheckedStep {
  enum class Kind { local, send, recv, wait, release };
  Kind kind = Kind::local;
  int channel = -1;     ///< of every kind but local
  int micro_batch = -1; ///< of every kind
  std::vector<CheckedRange> reads;
  std::vector<CheckedRange> writes;
  std::string name; ///< for messages, e.g. "F1 of micro-batch 3"
};

struct CheckedDevice {
  std::string name;
  int64_t arena_bytes = 0;
  std::vector<CheckedStep> steps;
};

/// Returns an empty string if the programs of all devices finish and use their
/// buffers rightly; otherwise one message in plain words: the shortest cycle of
/// waits (one line a step after the first line), a send or recv without its
/// other side, or the first wrong read or write. Each (channel, micro-batch)
/// must have exactly one send, one recv, one wait after the send and on its
/// device, and at most one release, after the recv and on its device.
std::string checkSchedule(const std::vector<CheckedDevice> &devices);

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_SCHEDULECHECK_H

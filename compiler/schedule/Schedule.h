//===- Schedule.h - Order of units on every device --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A unit is a phase of a stage on a micro-batch. A schedule (Registry.h) gives
// every device its units in order. The programs follow from the orders. A
// device receives or loads the operands of a unit just before the unit, and
// sends and stores its results just after it. A sender waits for a buffer just
// before it writes that buffer again, or at the end, so that a program can be
// run again. A unit that has more to do when all is made that others wait for
// (ScheduleStage::lateNs) is two runs, with its sends between them.
//
// A unit may not run ahead of its readers without bound. A value has
// `kSendBuffers` buffers. Its unit begins when the receivers have begun to read
// what it sent that many units ago. Some orders
// deadlock with so few buffers, and a value that is read many stages later
// would stall its sender again and again. Such values get as many more buffers
// as they need.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_SCHEDULE_H
#define PARTITA_COMPILER_SCHEDULE_SCHEDULE_H

#include "runtime/abi/Actions.h"

#include <cstdint>
#include <string>
#include <vector>

namespace partita::schedule {

/// Micro-batches of a value that may be in flight at the same time.
inline constexpr int kSendBuffers = 2;

/// The part of its stage that a unit computes. A prologue runs with the first
/// micro-batch of a step, and an update with the last. `backward` may be split
/// into gradients of values, for which other stages wait, and gradients of
/// weights. Values of `dist::Phase`.
enum class Phase : uint8_t {
  prologue,
  forward,
  backward,
  input_gradients,
  weight_gradients,
  update
};

/// The letter with which units of a phase are named.
inline char getLetter(Phase phase) { return "PFBIWU"[static_cast<int>(phase)]; }

/// A phase of a stage of the model.
struct ScheduleStage {
  int device = 0;
  double ns = 0; ///< one micro-batch
  Phase phase = Phase::forward;
  int number = -1; ///< of the model's stage
  /// Time of a unit after everything is made that other devices read of it.
  double lateNs = 0;
};

/// A value that crosses stages, comes from the host or goes to it.
struct ScheduleValue {
  int producer = -1; ///< stage; -1: input `input` of the model
  int input = -1;
  std::vector<int> consumers; ///< stages, ascending, without repetition
  std::vector<int> outputs;   ///< the model's outputs that are this value
  double transferNs = 0;      ///< if the receiver copies it
  double borrowNs = 0;        ///< if the receiver reads it in place
  /// By consumer: time from when its operands have arrived to the end of its
  /// last instruction that reads the value.
  std::vector<double> readNs;
  bool isConstant = false; ///< never rewritten: needs no buffer of its own
};

struct ScheduleProblem {
  std::vector<ScheduleStage> stages; ///< in a topological order
  std::vector<ScheduleValue> values;
  int devices = 1;
  int microBatches = 1;

  /// Whether a stage has a unit on a micro-batch.
  bool runs(int stage, int microBatch) const {
    return unitOf(stage, microBatch) == microBatch;
  }
  /// The micro-batch of a stage's unit that has to do with another stage's unit
  /// on `microBatch`.
  int unitOf(int stage, int microBatch) const {
    switch (stages[stage].phase) {
    case Phase::prologue:
      return 0;
    case Phase::forward:
    case Phase::backward:
    case Phase::input_gradients:
    case Phase::weight_gradients:
      break;
    case Phase::update:
      return microBatches - 1;
    }
    return microBatch;
  }
  /// The micro-batch of a value that units on `microBatch` have to do with.
  int versionOf(int value, int microBatch) const {
    const int producer = values[value].producer;
    return producer < 0 ? microBatch : unitOf(producer, microBatch);
  }
  /// Whether a value is made before the first micro-batch, for all of them.
  bool isOfStep(int value) const {
    const int producer = values[value].producer;
    return producer >= 0 && stages[producer].phase == Phase::prologue;
  }
  /// How many units of a stage read one version of a value.
  int countReads(int value, int stage) const {
    const Phase phase = stages[stage].phase;
    return isOfStep(value) && phase != Phase::prologue && phase != Phase::update
               ? microBatches
               : 1;
  }
};

struct ScheduledUnit {
  int stage = 0; ///< and so its phase
  int microBatch = 0;

  bool operator==(const ScheduledUnit &) const = default;
};

/// What a schedule decides.
struct UnitOrders {
  /// By device: its units, in the order in which it computes them.
  std::vector<std::vector<ScheduledUnit>> ofDevice;
  /// If only one device may work at a time: all units, in the order in which
  /// they pass a token on. Empty: devices work at the same time.
  std::vector<ScheduledUnit> token;
  /// If they are not what the schedule's name says: why, and what they are.
  std::string remark;
};

struct ScheduleAction {
  using Kind = abi::ActionKind;
  Kind kind;
  int microBatch;
  int stage = -1;   ///< run
  int value = -1;   ///< all but run and tokens: ScheduleProblem.values
  int channel = -1; ///< send, recv, wait, release
  int port = -1;    ///< load_input, store_output
  /// Of a run: which part of the unit. `early` is until its values are sent.
  enum class Part { whole, early, late } part = Part::whole;
};

struct ScheduleChannel {
  int value = -1;                         ///< -1: a token
  int source = 0, target = 0;             ///< devices
  int sourceStage = -1, targetStage = -1; ///< target: the first reader
};

/// How values are transferred between devices. Both lists have an entry per
/// value.
struct Transfers {
  /// Whether receivers read it in the sender's buffer. That saves a copy, but
  /// occupies the buffer for longer.
  std::vector<bool> borrowed;
  /// Micro-batches of it that may be in flight at the same time.
  std::vector<int> buffers;
};

struct Schedule {
  std::vector<std::vector<ScheduleAction>> programs; ///< one per device
  std::vector<ScheduleChannel> channels;
  Transfers transfers;
  double stepNs = 0;  ///< predicted time of a step
  double bubble = 0;  ///< idle share of the devices that have work
  std::string remark; ///< of UnitOrders
};

/// The programs that follow from orders. Values are borrowed wherever that does
/// not make the predicted step longer.
Schedule buildSchedule(const ScheduleProblem &problem,
                       const UnitOrders &orders);

/// Fills in the programs and channels of a schedule whose transfers are
/// decided.
void buildPrograms(const ScheduleProblem &problem, const UnitOrders &orders,
                   Schedule &schedule);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_SCHEDULE_H

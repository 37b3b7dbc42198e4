//===- Schedule.h - Order of units on every device --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A unit is a stage on one micro-batch. A list scheduler runs the units in
// simulated time: whenever a device is free it takes, of the units that could
// begin, the one its comparator puts first. From the order of units follow the
// programs: what a unit needs is received or loaded just before it, what it
// makes is sent and stored just after it, and a sent buffer is waited for just
// before it is written again, or at the end, so that a program can be run
// again.
//
// A unit may not overtake its readers without bound: on micro-batch m it begins
// when the receivers of what it sent on micro-batch m - kSendBuffers have begun
// to read that. The simulated run is therefore also a proof that the programs
// finish.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_SCHEDULE_H
#define PARTITA_COMPILER_SCHEDULE_SCHEDULE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::pipeline {

/// Micro-batches of a value that may be on their way at the same time.
inline constexpr int kSendBuffers = 2;

struct ScheduleStage {
  int device = 0;
  double ns = 0; ///< one micro-batch
};

/// A value that crosses stages, comes from the host or goes to it.
struct ScheduleValue {
  int producer = -1; ///< stage; -1: input `input` of the model
  int input = -1;
  std::vector<int> consumers; ///< stages, ascending, without repetition
  std::vector<int> outputs;   ///< outputs of the model that it is
  double transferNs = 0;      ///< the receiver copies it
  double borrowNs = 0;        ///< the receiver reads it where it is
  /// By consumer: from the begin of its work to the last that reads the value.
  std::vector<double> readNs;
  bool isConstant = false; ///< never rewritten: needs no buffer of its own
};

struct ScheduleProblem {
  std::vector<ScheduleStage> stages; ///< in a topological order
  std::vector<ScheduleValue> values;
  int devices = 1;
  int microBatches = 1;
};

struct ScheduledUnit {
  int stage;
  int microBatch;
};

/// Which of two units that could begin goes first, and whether units of
/// different devices may run at the same time.
class UnitOrder {
public:
  virtual ~UnitOrder() = default;
  virtual bool isBefore(ScheduledUnit a, ScheduledUnit b) const = 0;
  virtual bool isExclusive() const { return false; }
};

/// GPipe's forward half: lower micro-batches first, later stages first.
class FillDrain : public UnitOrder {
public:
  bool isBefore(ScheduledUnit a, ScheduledUnit b) const override;
};

/// One device at a time: a micro-batch goes through all stages, then the next.
class Sharded : public UnitOrder {
public:
  bool isBefore(ScheduledUnit a, ScheduledUnit b) const override;
  bool isExclusive() const override { return true; }
};

struct ScheduleStep {
  enum class Kind { run, send, recv, wait, loadInput, storeOutput, release };
  Kind kind;
  int microBatch;
  int stage = -1;   ///< run
  int value = -1;   ///< all but run and tokens: ScheduleProblem.values
  int channel = -1; ///< send, recv, wait, release
  int port = -1;    ///< loadInput, storeOutput
};

struct ScheduleChannel {
  int value = -1;                         ///< -1: a token
  int source = 0, target = 0;             ///< devices
  int sourceStage = -1, targetStage = -1; ///< the first that reads it
};

struct Schedule {
  std::vector<std::vector<ScheduleStep>> programs; ///< one a device
  std::vector<ScheduleChannel> channels;
  /// By value: whether receivers read it where it is, which spares a copy and
  /// keeps the sender's buffer for longer.
  std::vector<bool> borrowed;
  double stepNs = 0; ///< predicted time of a step
  double bubble = 0; ///< idle share of the devices that have work
};

/// Values are borrowed wherever that does not make the predicted step longer.
Schedule buildSchedule(const ScheduleProblem &problem, const UnitOrder &order);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_SCHEDULE_SCHEDULE_H

//===- Registry.h - The schedules by name -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule is one file that defines a `ScheduleKind`, and one line of
// Schedules.def that names it:
//
//   const ScheduleKind kLooped = {.name = "looped", ..., .order = order};
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_REGISTRY_H
#define PARTITA_COMPILER_SCHEDULE_REGISTRY_H

#include "compiler/schedule/Schedule.h"

#include <string_view>
#include <vector>

namespace partita::schedule {

/// Where stages go, of which each device has several.
enum class Placement {
  lap, ///< from the first device to the last, again and again: 0 1 2 0 1 2
  v    ///< there and back: 0 1 2 2 1 0
};

/// The device of a stage.
int placeStage(Placement placement, int64_t stage, int64_t devices);

struct ScheduleKind {
  std::string_view name;      ///< in partition files, in the IR and in plans
  std::string_view summary;   ///< for --help, e.g. "one device at a time"
  bool isForTraining = false; ///< and of no use without gradients
  /// The number of stages per device into which the planner cuts the model.
  int stagesPerDevice = 1;
  Placement placement = Placement::lap; ///< if nobody says another
  /// Whether gradients of weights are units of their own.
  bool splitsBackward = false;
  /// The default number of micro-batches of a step. `stages` and `devices`
  /// count only those that have work.
  int (*microBatches)(int stages, int devices) = nullptr;
  /// Orders every unit of the problem once, on its stage's device. The orders
  /// of all devices must agree with one total order in which every unit comes
  /// after those that it reads from.
  UnitOrders (*order)(const ScheduleProblem &problem) = nullptr;
};

#define PARTITA_SCHEDULE(kind) extern const ScheduleKind kind;
#include "compiler/schedule/Schedules.def"
#undef PARTITA_SCHEDULE

/// All schedules; the first is the default.
const std::vector<const ScheduleKind *> &getScheduleKinds();

/// The schedule of a name; null if there is none. An empty name stands for the
/// default schedule.
const ScheduleKind *findSchedule(std::string_view name);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_REGISTRY_H

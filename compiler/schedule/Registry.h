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

struct ScheduleKind {
  std::string_view name;    ///< in partition files, in the IR and in plans
  std::string_view summary; ///< for --help, e.g. "one device at a time"
  /// Into how many stages the planner cuts the model for each device.
  int stagesPerDevice = 1;
  /// Micro-batches of a step where nobody says how many. `stages` and `devices`
  /// count those that have work.
  int (*microBatches)(int stages, int devices) = nullptr;
  /// Every unit of the problem once, on its stage's device. The orders of all
  /// devices together must be those of one order in which every unit comes
  /// after those that it reads from.
  UnitOrders (*order)(const ScheduleProblem &problem) = nullptr;
};

#define PARTITA_SCHEDULE(kind) extern const ScheduleKind kind;
#include "compiler/schedule/Schedules.def"
#undef PARTITA_SCHEDULE

/// All schedules; the first is taken where nobody names one.
const std::vector<const ScheduleKind *> &getScheduleKinds();

/// The schedule of a name; null if there is none. An empty name: the standard
/// one.
const ScheduleKind *findSchedule(std::string_view name);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_REGISTRY_H

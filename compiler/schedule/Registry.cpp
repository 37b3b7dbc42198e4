//===- Registry.cpp - The schedules by name -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Registry.h"

namespace partita::schedule {

const std::vector<const ScheduleKind *> &getScheduleKinds() {
  static const std::vector<const ScheduleKind *> kinds = {
#define PARTITA_SCHEDULE(kind) &kind,
#include "compiler/schedule/Schedules.def"
#undef PARTITA_SCHEDULE
  };
  return kinds;
}

const ScheduleKind *findSchedule(std::string_view name) {
  for (const ScheduleKind *kind : getScheduleKinds())
    if (name.empty() || kind->name == name)
      return kind;
  return nullptr;
}

int placeStage(Placement placement, int64_t stage, int64_t devices) {
  const int64_t place = stage % devices;
  const bool isBack = placement == Placement::v && stage / devices % 2 != 0;
  return static_cast<int>(isBack ? devices - 1 - place : place);
}

} // namespace partita::schedule

//===- Sequential.cpp - One device at a time ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A micro-batch goes through all stages, then the next one. Three devices, two
// micro-batches:
//
//   cpu:0   0 . . 1 . .
//   cpu:1   . 0 . . 1 .
//   cpu:2   . . 0 . . 1
//
// For a model that does not fit one device, where the devices cannot work at
// the same time, or a step feeds one micro-batch. A device begins when it gets
// the token, or the value for which it would wait anyway.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Registry.h"

namespace partita::schedule {

static UnitOrders orderSequential(const ScheduleProblem &problem) {
  UnitOrders orders;
  orders.ofDevice.resize(problem.devices);
  for (int m = 0; m < problem.microBatches; ++m)
    for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s) {
      if (!problem.runs(s, m))
        continue;
      ScheduledUnit unit{s, m};
      orders.ofDevice[problem.stages[s].device].push_back(unit);
      orders.token.push_back(unit);
    }
  return orders;
}

/// Nothing overlaps: more micro-batches gain nothing.
const ScheduleKind kSequential = {.name = "sequential",
                                  .summary = "one device at a time",
                                  .microBatches = [](int, int) { return 1; },
                                  .order = orderSequential};

} // namespace partita::schedule

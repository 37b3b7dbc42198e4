//===- OneForwardOneBackward.cpp - A backward as soon as there is one -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream's flush (Narayanan et al., 2021). Three devices, four
// micro-batches:
//
//   cpu:0   0 1 2   .   .   0b 3 1b   2b    3b
//   cpu:1   . 0 1     0b   2 1b 3 2b     3b
//   cpu:2   . . 0 0b 1 1b 2 2b 3 3b
//
// A stage begins with as many forwards as there are stages after it. Then each
// further forward is followed by a backward. So it holds what its backward
// needs of that many micro-batches and one, however many a step has. The bubble
// is that of GPipe. The last stage has no backward unit: its gradients follow
// each micro-batch at once.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

#include <algorithm>

namespace partita::schedule {

static UnitOrders orderOneForwardOneBackward(const ScheduleProblem &problem) {
  const std::vector<DevicePhases> devices = getDevicePhases(problem);
  if (devices.empty())
    return kFillDrain.order(problem);
  UnitOrders orders;
  orders.ofDevice.resize(problem.devices);
  const int count = problem.microBatches;
  for (int d = 0; d < problem.devices; ++d) {
    const DevicePhases &device = devices[d];
    auto add = [&](int stage, int m) {
      if (stage >= 0 && m < count && problem.runs(stage, m))
        orders.ofDevice[d].push_back({stage, m});
    };
    add(device.prologue, 0);
    const int ahead = device.backward < 0 ? 0 : std::min(count, device.later);
    for (int m = 0; m < ahead; ++m)
      add(device.forward, m);
    for (int m = 0; m < count; ++m) {
      add(device.forward, m + ahead);
      add(device.backward, m);
    }
    add(device.update, count - 1);
  }
  return orders;
}

const ScheduleKind kOneForwardOneBackward = {
    .name = "1f1b",
    .summary = "for training: each backward as soon as it can be computed, so "
               "that few micro-batches are held",
    .microBatches = getTwoPerStage,
    .order = orderOneForwardOneBackward};

} // namespace partita::schedule

//===- GPipe.cpp - All micro-batches forward, then all backward -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Huang et al., 2019. Three devices, three micro-batches, each backward (b)
// twice as long as its forward:
//
//   cpu:0   0 1 2 . . . . . . . . 0b  1b  2b
//   cpu:1   . 0 1 2 . . . 0b  1b  2b
//   cpu:2   . . 0 0b  1 1b  2 2b
//
// A stage holds what its backward needs of all micro-batches. The last stage
// has no backward unit: its gradients follow each micro-batch at once.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

namespace partita::schedule {

static UnitOrders orderGPipe(const ScheduleProblem &problem) {
  const std::vector<DevicePhases> devices = getDevicePhases(problem);
  if (devices.empty())
    return kFillDrain.order(problem);
  UnitOrders orders;
  orders.ofDevice.resize(problem.devices);
  for (int d = 0; d < problem.devices; ++d)
    for (int stage : {devices[d].prologue, devices[d].forward,
                      devices[d].backward, devices[d].update})
      for (int m = 0; stage >= 0 && m < problem.microBatches; ++m)
        if (problem.runs(stage, m))
          orders.ofDevice[d].push_back({stage, m});
  return orders;
}

const ScheduleKind kGPipe = {
    .name = "gpipe",
    .summary = "for training: all micro-batches forward, then all backward",
    .microBatches = getTwoPerStage,
    .order = orderGPipe};

} // namespace partita::schedule

//===- PipelineStages.cpp - The stages of a training pipeline -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"

namespace partita::schedule {

std::vector<DevicePhases> getDevicePhases(const ScheduleProblem &problem) {
  std::vector<DevicePhases> devices(problem.devices);
  int forwards = 0;
  for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s) {
    DevicePhases &device = devices[problem.stages[s].device];
    const Phase phase = problem.stages[s].phase;
    int &own = phase == Phase::prologue   ? device.prologue
               : phase == Phase::forward  ? device.forward
               : phase == Phase::backward ? device.backward
                                          : device.update;
    if (own >= 0)
      return {};
    own = s;
    if (phase == Phase::forward)
      device.later = ++forwards;
  }
  for (DevicePhases &device : devices)
    device.later = forwards - device.later;
  return devices;
}

} // namespace partita::schedule

//===- PipelineStages.h - The stages of a training pipeline -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_PIPELINESTAGES_H
#define PARTITA_COMPILER_SCHEDULE_PIPELINESTAGES_H

#include "compiler/schedule/Schedule.h"

#include <vector>

namespace partita::schedule {

/// The units of a device, by phase: stages of the problem; -1: it has none.
struct DevicePhases {
  int prologue = -1, forward = -1, backward = -1, update = -1;
  /// Forward units that a micro-batch meets after this one.
  int later = 0;
};

/// By device, if each device has at most one stage of the model; empty if a
/// device has several.
std::vector<DevicePhases> getDevicePhases(const ScheduleProblem &problem);

/// Micro-batches of a step where a schedule needs two a stage, or devices wait.
inline int getTwoPerStage(int stages, int /*devices*/) {
  return stages > 1 ? 2 * stages : 1;
}

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_PIPELINESTAGES_H

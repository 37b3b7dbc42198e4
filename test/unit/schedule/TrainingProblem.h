//===- TrainingProblem.h - Stages of a model that is trained ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_SCHEDULE_TRAININGPROBLEM_H
#define PARTITA_TEST_UNIT_SCHEDULE_TRAININGPROBLEM_H

#include "compiler/schedule/Registry.h"
#include "compiler/schedule/TrainingChain.h"

#include <string>
#include <vector>

namespace partita::schedule {

struct TrainingShape {
  int stages, microBatches;
  int laps = 1;
  bool isV = false;
  bool isSplit = false; ///< backward, that of the last stage too
};

/// Stages of a model that is trained. Each forward and each backward takes 100,
/// and so does each half of a backward that is split.
inline ScheduleProblem training(TrainingShape shape) {
  TrainingChain chain{{}, shape.microBatches, shape.isSplit, shape.isSplit};
  const int p = shape.stages / shape.laps;
  for (int s = 0; s < shape.stages; ++s)
    chain.deviceOf.push_back(
        placeStage(shape.isV ? Placement::v : Placement::lap, s, p));
  return makeProblem(chain);
}

/// The order of a device as papers write it: "0F0 0F1 1F0 0B0".
inline std::string name(const std::vector<ScheduledUnit> &units,
                        const ScheduleProblem &problem) {
  std::string text;
  for (const ScheduledUnit &unit : units) {
    const ScheduleStage &stage = problem.stages[unit.stage];
    if (stage.phase != Phase::update)
      text += (text.empty() ? "" : " ") + std::to_string(stage.number) +
              getLetter(stage.phase) + std::to_string(unit.microBatch);
  }
  return text;
}

} // namespace partita::schedule

#endif // PARTITA_TEST_UNIT_SCHEDULE_TRAININGPROBLEM_H

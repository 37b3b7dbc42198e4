//===- TrainingProblem.h - Stages of a model that is trained ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_SCHEDULE_TRAININGPROBLEM_H
#define PARTITA_TEST_UNIT_SCHEDULE_TRAININGPROBLEM_H

#include "compiler/schedule/Schedule.h"

#include <string>
#include <utility>
#include <vector>

namespace partita::schedule {

struct TrainingShape {
  int stages, microBatches;
  int laps = 1;
  bool isV = false;
  bool isSplit = false; ///< backward, that of the last stage too
};

/// Stages of a model that is trained: forward, backward but for the last,
/// update. Each forward and each backward takes 100, and so does each half of a
/// backward that is split.
inline ScheduleProblem training(TrainingShape shape) {
  const int stages = shape.stages, p = stages / shape.laps;
  ScheduleProblem problem;
  problem.devices = p;
  problem.microBatches = shape.microBatches;
  auto addStage = [&](int s, double ns, Phase phase) {
    const int lap = s / p, device = s % p;
    problem.stages.push_back(
        {shape.isV && lap % 2 ? p - 1 - device : device, ns, phase, s});
    return static_cast<int>(problem.stages.size()) - 1;
  };
  auto addValue = [&](int producer, std::vector<int> consumers) {
    ScheduleValue value;
    value.producer = producer;
    value.consumers = std::move(consumers);
    value.readNs.assign(value.consumers.size(), 0);
    problem.values.push_back(value);
  };
  std::vector<int> forward, backward(stages, -1), made(stages, -1);
  for (int s = 0; s < stages; ++s)
    forward.push_back(addStage(s, s + 1 < stages || shape.isSplit ? 100 : 200,
                               Phase::forward));
  for (int s = stages - (shape.isSplit ? 1 : 2); s >= 0; --s)
    backward[s] = addStage(
        s, 100, shape.isSplit ? Phase::input_gradients : Phase::backward);
  for (int s = 0; s < stages; ++s)
    made[s] = backward[s] >= 0 ? backward[s] : forward[s];
  for (int s = stages - 1; shape.isSplit && s >= 0; --s) {
    const int weights = addStage(s, 100, Phase::weight_gradients);
    addValue(backward[s], {weights});
    made[s] = weights;
  }
  for (int s = 0; s < stages; ++s) {
    if (s + 1 < stages)
      addValue(forward[s], {forward[s + 1]});
    if (backward[s] >= 0)
      addValue(forward[s], {backward[s]});
    if (s + 1 < stages)
      addValue(backward[s + 1] >= 0 ? backward[s + 1] : forward[s + 1],
               {backward[s]});
  }
  for (int s = stages - 1; s >= 0; --s) {
    const int update = addStage(s, 0, Phase::update);
    addValue(made[s], {update});
  }
  return problem;
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

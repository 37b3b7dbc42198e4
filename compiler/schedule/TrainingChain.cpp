//===- TrainingChain.cpp - A pipeline that is trained, in general ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/TrainingChain.h"

#include "compiler/schedule/PipelineStages.h"

#include <algorithm>
#include <utility>

namespace partita::schedule {

ScheduleProblem makeProblem(const TrainingChain &chain) {
  const int stages = static_cast<int>(chain.deviceOf.size());
  ScheduleProblem problem;
  problem.devices =
      1 + *std::max_element(chain.deviceOf.begin(), chain.deviceOf.end());
  problem.microBatches = chain.microBatches;
  auto addStage = [&](int s, double ns, Phase phase) {
    problem.stages.push_back({chain.deviceOf[s], ns, phase, s});
    return static_cast<int>(problem.stages.size()) - 1;
  };
  auto addValue = [&](int producer, std::vector<int> consumers) {
    ScheduleValue value;
    value.producer = producer;
    value.consumers = std::move(consumers);
    value.readNs.assign(value.consumers.size(), 0);
    problem.values.push_back(std::move(value));
  };
  const int returning = stages - (chain.hasLastBackward ? 0 : 1);
  std::vector<int> forward, backward(stages, -1), made(stages, -1);
  for (int s = 0; s < stages; ++s)
    forward.push_back(addStage(s, s < returning ? 100 : 200, Phase::forward));
  for (int s = returning - 1; s >= 0; --s)
    backward[s] = addStage(
        s, 100, chain.isSplit ? Phase::input_gradients : Phase::backward);
  for (int s = 0; s < stages; ++s)
    made[s] = backward[s] >= 0 ? backward[s] : forward[s];
  for (int s = stages - 1; chain.isSplit && s >= 0; --s) {
    const int weights = addStage(s, 100, Phase::weight_gradients);
    addValue(made[s], {weights});
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

/// The most micro-batches for which a device has begun one unit, and not ended
/// another one.
static int countMost(const std::vector<ScheduledUnit> &units, int begins,
                     int ends) {
  int held = 0, most = 1;
  if (begins < 0 || ends < 0)
    return most;
  for (const ScheduledUnit &unit : units) {
    if (unit.stage == begins)
      most = std::max(most, ++held);
    held -= unit.stage == ends;
  }
  return most;
}

HeldMicroBatches countHeld(const ScheduleProblem &problem,
                           const UnitOrders &orders) {
  HeldMicroBatches held;
  for (const PipelineStage &stage : getPipeline(problem).stages) {
    const auto &units = orders.ofDevice[stage.device];
    const int last = stage.weights >= 0 ? stage.weights : stage.backward;
    held.untilValues.push_back(countMost(units, stage.forward, stage.backward));
    held.untilWeights.push_back(countMost(units, stage.forward, last));
    held.betweenGradients.push_back(
        countMost(units, stage.backward, stage.weights));
  }
  return held;
}

} // namespace partita::schedule

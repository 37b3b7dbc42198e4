//===- PipelineStages.cpp - The stages of a training pipeline -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"

#include "compiler/schedule/Registry.h"

#include <algorithm>
#include <utility>

namespace partita::schedule {

Pipeline getPipeline(const ScheduleProblem &problem) {
  Pipeline pipeline;
  std::vector<PipelineStage> &stages = pipeline.stages;
  const int count = static_cast<int>(problem.stages.size());
  for (int s = 0; s < count; ++s)
    if (const ScheduleStage &stage = problem.stages[s];
        stage.phase == Phase::forward) {
      stages.push_back({stage.number, stage.device});
      if (std::find(pipeline.devices.begin(), pipeline.devices.end(),
                    stage.device) == pipeline.devices.end())
        pipeline.devices.push_back(stage.device);
      stages.back().forward = s;
    }
  for (int s = 0; s < count; ++s) {
    const ScheduleStage &stage = problem.stages[s];
    for (PipelineStage &of : stages)
      if (of.number == stage.number) {
        if (stage.phase == Phase::weight_gradients)
          of.weights = s;
        else if (stage.phase == Phase::backward ||
                 stage.phase == Phase::input_gradients)
          of.backward = s;
      }
  }
  return pipeline;
}

bool isTrained(const ScheduleProblem &problem) {
  return std::any_of(
      problem.stages.begin(), problem.stages.end(),
      [](const ScheduleStage &stage) { return stage.phase == Phase::update; });
}

/// Whether all devices have equally many stages, each where the placement puts
/// it.
static bool isPlaced(const Pipeline &pipeline, Placement placement) {
  const size_t p = pipeline.devices.size();
  if (p == 0 || pipeline.stages.size() % p != 0)
    return false;
  for (size_t s = 0; s < pipeline.stages.size(); ++s)
    if (pipeline.stages[s].device !=
        pipeline.devices[placeStage(placement, s, p)])
      return false;
  return true;
}

int Pipeline::countLaps() const {
  return isPlaced(*this, Placement::lap)
             ? static_cast<int>(stages.size() / devices.size())
             : 0;
}

bool Pipeline::isV() const {
  return stages.size() == 2 * devices.size() && isPlaced(*this, Placement::v);
}

OrderWriter::OrderWriter(const ScheduleProblem &problem,
                         const Pipeline &pipeline)
    : problem(problem), pipeline(pipeline) {
  orders.ofDevice.resize(problem.devices);
  for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s)
    if (problem.stages[s].phase == Phase::prologue)
      add(s, 0);
}

void OrderWriter::add(int stage, int m) {
  if (stage >= 0 && m < problem.microBatches)
    orders.ofDevice[problem.stages[stage].device].push_back({stage, m});
}

UnitOrders OrderWriter::finish() {
  for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s)
    if (problem.stages[s].phase == Phase::update)
      add(s, problem.microBatches - 1);
  return std::move(orders);
}

UnitOrders orderBreadthFirst(const ScheduleProblem &problem) {
  const Pipeline pipeline = getPipeline(problem);
  const int count = static_cast<int>(pipeline.stages.size());
  OrderWriter writer(problem, pipeline);
  for (int s = 0; s < count; ++s)
    for (int m = 0; m < problem.microBatches; ++m)
      writer.addForward(s, m);
  for (int s = count; s-- > 0;)
    for (int m = 0; m < problem.microBatches; ++m) {
      writer.addBackward(s, m);
      writer.addWeights(s, m);
    }
  return writer.finish();
}

UnitOrders orderOneByOne(const ScheduleProblem &problem, std::string_view name,
                         int ahead) {
  const Pipeline pipeline = getPipeline(problem);
  const int laps = pipeline.countLaps();
  if (laps == 0) {
    UnitOrders orders = kFillDrain.order(problem);
    orders.remark =
        std::string(name) +
        " needs as many stages on each device, placed in turn (0 1 "
        "2 0 1 2): devices take micro-batches as they come, as by " +
        std::string(kFillDrain.name);
    return orders;
  }
  if (laps == 1)
    ahead = 1;
  const int p = static_cast<int>(pipeline.devices.size()),
            rounds = problem.microBatches / p;
  // As many micro-batches go through all laps before others begin.
  const int group = rounds > 0 ? (problem.microBatches + rounds - 1) / rounds
                               : problem.microBatches,
            units = group * std::max(rounds, 1) * laps;
  OrderWriter writer(problem, pipeline);
  for (int d = 0; d < p; ++d) {
    // The i-th unit of a device.
    auto lapOf = [&](int i) { return i / group % laps; };
    auto microBatchOf = [&](int i) {
      return i / (group * laps) * group + i % group;
    };
    auto stageOf = [&](int i) { return lapOf(i) * p + d; };
    auto stageBack = [&](int i) { return (laps - 1 - lapOf(i)) * p + d; };
    const int warmUp =
        std::min((laps - 1) * group + ahead * (p - 1 - d), units);
    for (int i = 0; i < units + warmUp; ++i) {
      if (i < units)
        writer.addForward(stageOf(i), microBatchOf(i));
      if (int back = i - warmUp; back >= 0) {
        writer.addBackward(stageBack(back), microBatchOf(back));
        if (back >= d)
          writer.addWeights(stageBack(back - d), microBatchOf(back - d));
      }
    }
    for (int i = std::max(units - d, 0); i < units; ++i)
      writer.addWeights(stageBack(i), microBatchOf(i));
  }
  return writer.finish();
}

} // namespace partita::schedule

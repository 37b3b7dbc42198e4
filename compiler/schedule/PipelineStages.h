//===- PipelineStages.h - The stages of a training pipeline -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What schedules of training share. Their orders have the same frame on every
// device: prologues, then the units of micro-batches, then updates. Stages are
// taken for a chain in the order of their forward units. That is a topological
// order, so an order that suits the chain suits every graph of these stages.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_PIPELINESTAGES_H
#define PARTITA_COMPILER_SCHEDULE_PIPELINESTAGES_H

#include "compiler/schedule/Schedule.h"

#include <string_view>
#include <vector>

namespace partita::schedule {

/// A stage of the model, by phase of micro-batches: stages of the problem; -1:
/// it has no unit of that phase. A backward that is not split is `backward`
/// alone.
struct PipelineStage {
  int number = -1; ///< the model's
  int device = 0;
  int forward = -1, backward = -1, weights = -1;
};

struct Pipeline {
  std::vector<PipelineStage> stages; ///< in the order of the chain
  std::vector<int> devices; ///< that have stages, in the order of their first

  /// Stages a device, if stage s is on device s modulo their number; else 0.
  int countLaps() const;
  /// Whether each device has two stages, and they go to the last device and
  /// back: 0 1 2 2 1 0.
  bool isV() const;
};

Pipeline getPipeline(const ScheduleProblem &problem);

/// Whether micro-batches have more than a forward pass.
bool isTrained(const ScheduleProblem &problem);

/// Writes the orders of all devices. What does not exist is left out: units of
/// phases that a stage does not have, and of micro-batches beyond the last. So
/// a schedule may count with more micro-batches than there are.
class OrderWriter {
public:
  OrderWriter(const ScheduleProblem &problem, const Pipeline &pipeline);

  void addForward(int stage, int m) { add(pipeline.stages[stage].forward, m); }
  /// Of the gradients of values, or of all.
  void addBackward(int stage, int m) {
    add(pipeline.stages[stage].backward, m);
  }
  void addWeights(int stage, int m) { add(pipeline.stages[stage].weights, m); }

  /// The orders, with the updates.
  UnitOrders finish();

private:
  void add(int stage, int m);

  const ScheduleProblem &problem;
  const Pipeline &pipeline;
  UnitOrders orders;
};

/// All micro-batches of each stage of a device forward, in the order of its
/// stages, and then backward, in the reverse order.
UnitOrders orderBreadthFirst(const ScheduleProblem &problem);

/// One forward, one backward, after as many forwards as there are devices
/// later; with several laps, `ahead` for each of these, and those of all laps
/// but the last. On the d-th device, from 0, weight gradients come d units
/// after the backward that they belong to. Needs as many stages on each device,
/// lap by lap; else these are the orders of fill_drain, with a remark that says
/// it of the schedule `name`.
UnitOrders orderOneByOne(const ScheduleProblem &problem, std::string_view name,
                         int ahead);

/// Micro-batches of a step where a schedule needs two a stage, or devices wait.
inline int getTwoPerStage(int stages, int /*devices*/) {
  return stages > 1 ? 2 * stages : 1;
}

/// The same where devices with several stages take them in turn.
inline int getTwoPerDevice(int /*stages*/, int devices) {
  return devices > 1 ? 2 * devices : 1;
}

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_PIPELINESTAGES_H

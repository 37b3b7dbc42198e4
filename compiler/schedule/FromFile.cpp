//===- FromFile.cpp - Units in the order of a file ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/OrderFile.h"
#include "compiler/schedule/PipelineStages.h"
#include "runtime/abi/Text.h"

#include <algorithm>
#include <map>

namespace partita::schedule {
namespace {

/// A unit of a device's order, and the action that it is of; null: of none.
struct PlacedUnit {
  ScheduledUnit unit;
  const OrderAction *action = nullptr;
};

/// Whether the devices can compute all units in their orders.
class DeadlockSearch {
public:
  DeadlockSearch(const ScheduleProblem &problem,
                 const std::vector<std::vector<PlacedUnit>> &orders)
      : problem(problem), orders(orders), reads(problem.stages.size()),
        next(orders.size(), 0) {
    for (const ScheduleValue &value : problem.values)
      for (int consumer : value.consumers)
        if (value.producer >= 0 && value.producer != consumer)
          reads[consumer].push_back(value.producer);
    for (size_t d = 0; d < orders.size(); ++d)
      for (size_t i = 0; i < orders[d].size(); ++i)
        placeOf[keyOf(orders[d][i].unit)] = {static_cast<int>(d), i};
  }

  /// Empty, or the shortest cycle of units that wait for one another.
  std::string find() {
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t d = 0; d < orders.size(); ++d)
        while (next[d] < orders[d].size() &&
               getAwaited(static_cast<int>(d)).empty()) {
          ++next[d];
          moves = true;
        }
    }
    std::vector<int> best;
    for (size_t d = 0; d < orders.size(); ++d)
      if (std::vector<int> cycle = findCycle(static_cast<int>(d));
          !cycle.empty() && (best.empty() || cycle.size() < best.size()))
        best = cycle;
    return best.empty() ? "" : describe(best);
  }

private:
  using Key = std::pair<int, int>; // stage, micro-batch
  struct Place {
    int device;
    size_t position;
  };

  Key keyOf(ScheduledUnit unit) const { return {unit.stage, unit.microBatch}; }

  /// Units that a device's next one reads from and that are not computed.
  std::vector<Place> getAwaited(int device) const {
    std::vector<Place> awaited;
    const ScheduledUnit unit = orders[device][next[device]].unit;
    for (int producer : reads[unit.stage]) {
      const Place place =
          placeOf.at({producer, problem.unitOf(producer, unit.microBatch)});
      if (place.position >= next[place.device])
        awaited.push_back(place);
    }
    return awaited;
  }

  bool isBlocked(int device) const {
    return next[device] < orders[device].size();
  }

  /// The shortest cycle of devices from one back to it.
  std::vector<int> findCycle(int start) const {
    std::map<int, int> cameFrom;
    std::vector<int> queue = {start};
    for (size_t i = 0; i < queue.size(); ++i) {
      if (!isBlocked(queue[i]))
        continue;
      for (const Place &place : getAwaited(queue[i])) {
        if (place.device == start) {
          std::vector<int> cycle;
          for (int d = queue[i]; d != start; d = cameFrom.at(d))
            cycle.push_back(d);
          cycle.push_back(start);
          std::reverse(cycle.begin(), cycle.end());
          return cycle;
        }
        if (cameFrom.emplace(place.device, queue[i]).second)
          queue.push_back(place.device);
      }
    }
    return {};
  }

  std::string describe(const std::vector<int> &cycle) const {
    std::string text;
    for (size_t i = 0; i < cycle.size(); ++i) {
      const int d = cycle[i], to = cycle[(i + 1) % cycle.size()];
      for (const Place &place : getAwaited(d))
        if (place.device == to) {
          text += (i == 0 ? "" : "; ") + getName(d, next[d]) + " waits for " +
                  getName(to, place.position);
          if (place.position != next[to])
            text += ", which comes after " + getName(to, next[to]);
          break;
        }
    }
    return text;
  }

  std::string getName(int device, size_t position) const {
    const PlacedUnit &placed = orders[device][position];
    if (placed.action)
      return placed.action->describe();
    const ScheduleStage &stage = problem.stages[placed.unit.stage];
    return getLetter(stage.phase) + std::to_string(stage.number) + " (rank " +
           std::to_string(device) + ")";
  }

  const ScheduleProblem &problem;
  const std::vector<std::vector<PlacedUnit>> &orders;
  std::vector<std::vector<int>> reads; ///< stages, by stage
  std::map<Key, Place> placeOf;
  std::vector<size_t> next; ///< positions, by device
};

/// What an action computes of its stage, in order.
std::vector<int> getUnits(const PipelineStage &stage, char kind) {
  switch (kind) {
  case 'F':
    return {stage.forward};
  case 'I':
    return {stage.backward};
  case 'W':
    return {stage.weights};
  default:
    return {stage.backward, stage.weights};
  }
}

/// What of the whole does not fit; empty: nothing.
std::string checkCounts(const ScheduleProblem &problem, const OrderFile &file,
                        int stages) {
  if (file.microBatches != problem.microBatches)
    return "orders " + abi::countOf(file.microBatches, "micro-batch", "es") +
           ", and a step has " + std::to_string(problem.microBatches) +
           " (--micro-batches)";
  const Pipeline pipeline = getPipeline(problem);
  int last = -1; // that has work
  for (const PipelineStage &stage : pipeline.stages)
    last = std::max(last, stage.number);
  const int count = static_cast<int>(file.rankOf.size());
  if (count > stages || count <= last)
    return "orders " + abi::countOf(count, "stage") + ", and the model has " +
           std::to_string(count > stages ? stages : last + 1);
  if (file.ofRank.size() > static_cast<size_t>(problem.devices))
    return "orders " + abi::countOf(file.ofRank.size(), "device") +
           ", and there " + (problem.devices == 1 ? "is " : "are ") +
           std::to_string(problem.devices);
  if (file.hasBackward && !isTrained(problem))
    return "orders gradients, and the model is not trained: leave out what is "
           "not F";
  if (!file.hasBackward && isTrained(problem))
    return "orders no gradients, and the model is trained: add B, or I and W, "
           "of each micro-batch";
  return "";
}

} // namespace

std::optional<std::string> orderByFile(const ScheduleProblem &problem,
                                       const OrderFile &file, int stages,
                                       UnitOrders &orders) {
  if (std::string misfit = checkCounts(problem, file, stages); !misfit.empty())
    return misfit;
  const Pipeline pipeline = getPipeline(problem);
  std::map<int, const PipelineStage *> byNumber;
  for (const PipelineStage &stage : pipeline.stages)
    byNumber[stage.number] = &stage;
  std::vector<std::vector<PlacedUnit>> placed(problem.devices);
  auto addOnce = [&](Phase phase, int m) {
    for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s)
      if (problem.stages[s].phase == phase)
        placed[problem.stages[s].device].push_back({{s, m}});
  };
  addOnce(Phase::prologue, 0);
  for (const std::vector<OrderAction> &actions : file.ofRank)
    for (const OrderAction &action : actions) {
      auto stage = byNumber.find(action.stage);
      if (stage == byNumber.end())
        continue; // it has nothing to compute
      if (stage->second->device != action.rank)
        return action.describe() + ": stage " + std::to_string(action.stage) +
               " is on device " + std::to_string(stage->second->device);
      for (int unit : getUnits(*stage->second, action.kind))
        if (unit >= 0)
          placed[action.rank].push_back({{unit, action.microBatch}, &action});
    }
  addOnce(Phase::update, problem.microBatches - 1);
  if (std::string cycle = DeadlockSearch(problem, placed).find();
      !cycle.empty())
    return "deadlocks: these actions wait for one another: " + cycle;
  if (!file.descent.empty() && isTrained(problem))
    orders.remark =
        "does not take all micro-batches in ascending order: " + file.descent +
        ". Sums over micro-batches are added up in this order, so "
        "they may round otherwise than by other schedules";
  orders.ofDevice.resize(problem.devices);
  for (int d = 0; d < problem.devices; ++d)
    for (const PlacedUnit &unit : placed[d])
      orders.ofDevice[d].push_back(unit.unit);
  return std::nullopt;
}

const ScheduleKind kFromFile = {.name = "file",
                                .summary = "the order of a file",
                                .microBatches = getTwoPerStage};

} // namespace partita::schedule

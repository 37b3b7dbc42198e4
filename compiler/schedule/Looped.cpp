//===- Looped.cpp - Several stages a device, in turn ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The forward half of interleaved schedules (Narayanan et al., 2021; looped,
// breadth-first pipelines: Lamy-Poirier, 2022). Four devices, eight stages,
// four micro-batches; stages 0 to 3 make the first lap, stages 4 to 7 (primed)
// the second:
//
//   cpu:0   0  1  2  3  0' 1' 2' 3' .  .  .
//   cpu:1   .  0  1  2  3  0' 1' 2' 3' .  .
//   cpu:2   .  .  0  1  2  3  0' 1' 2' 3' .
//   cpu:3   .  .  .  0  1  2  3  0' 1' 2' 3'
//
// With v laps a stage takes a v-th of the time, and so do fill and drain: a
// step of m micro-batches over p devices takes (m + (p - 1) / v) times a
// device's work on a micro-batch, where fill_drain takes m + p - 1. That helps
// most where micro-batches are few, at most a few a device. With fewer than p
// the devices wait for the first lap to end; the step is still shorter, by
// (m - 1)(v - 1) stages. With one micro-batch there is nothing to gain.
//
// The price is v times the transfers. And all stages must take about the same
// time: a lap is as slow as the slowest stage in it or before it, and a faster
// stage of the same device in another lap does not make up for that.
//
// Of m >= p micro-batches, groups of p to 2p - 1 go through all laps one after
// another. p keep every device busy until the first micro-batch comes round; of
// more than p + 1, the last device waits for a buffer, which costs less than
// the holes of a group smaller than p.
//
// A lap ends where the stages, in their order, come back to a device that had
// one in this lap: any assignment of stages to devices has an order, and
// 0 1 2 3 0 1 2 3 has the one above.
//
// In training all micro-batches go through each lap before the next one, and
// then back in the same way. A stage holds all micro-batches until their
// backward, as by GPipe.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

#include <algorithm>
#include <set>

namespace partita::schedule {

/// The stages of each lap, in their order.
static std::vector<std::vector<int>> getLaps(const ScheduleProblem &problem) {
  std::vector<std::vector<int>> laps;
  std::set<int> visited;
  int last = -1;
  for (int s = 0; s < static_cast<int>(problem.stages.size()); ++s) {
    int device = problem.stages[s].device;
    bool isBack = device != last && visited.count(device);
    if (isBack)
      visited.clear();
    if (isBack || laps.empty())
      laps.emplace_back();
    visited.insert(device);
    laps.back().push_back(s);
    last = device;
  }
  return laps;
}

static UnitOrders orderLooped(const ScheduleProblem &problem) {
  if (isTrained(problem))
    return orderBreadthFirst(problem);
  std::set<int> devices;
  for (const ScheduleStage &stage : problem.stages)
    devices.insert(stage.device);
  const std::vector<std::vector<int>> laps = getLaps(problem);
  const int count = problem.microBatches,
            p = std::max<int>(1, static_cast<int>(devices.size())),
            groups = std::max(1, count / p);
  UnitOrders orders;
  orders.ofDevice.resize(problem.devices);
  for (int group = 0, begin = 0; group < groups; ++group) {
    int end = begin + count / groups + (group < count % groups);
    for (const std::vector<int> &lap : laps)
      for (int m = begin; m < end; ++m)
        for (int s : lap)
          if (problem.runs(s, m))
            orders.ofDevice[problem.stages[s].device].push_back({s, m});
    begin = end;
  }
  return orders;
}

const ScheduleKind kLooped = {
    .name = "looped",
    .summary = "two stages a device, in turn: devices wait less where "
               "micro-batches are few",
    .stagesPerDevice = 2,
    .microBatches = getTwoPerDevice,
    .order = orderLooped};

} // namespace partita::schedule

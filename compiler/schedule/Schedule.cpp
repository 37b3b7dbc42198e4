//===- Schedule.cpp - Order of units on every device ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

#include "compiler/schedule/Timing.h"

#include <algorithm>
#include <set>

namespace partita::schedule {
namespace {

// Each time, what holds up the critical path changes; few times are enough
// where a way that is shorter than the critical one becomes the next.
constexpr int kMostTrials = 16;
// By how much more buffers must shorten the step: they cost memory.
constexpr double kLeastGain = 0.1;

struct Choice {
  Transfers transfers;
  Timing timing;
};

Choice time(const ScheduleProblem &problem, const UnitOrders &orders,
            Transfers transfers) {
  Choice choice{std::move(transfers), {}};
  choice.timing = timeOrders(problem, orders, choice.transfers);
  return choice;
}

/// Receivers borrow all values, if that makes the step no longer than if they
/// copied all; else those that do not hold up their senders.
Choice chooseBorrowed(const ScheduleProblem &problem,
                      const UnitOrders &orders) {
  const size_t count = problem.values.size();
  const std::vector<int> buffers(count, kSendBuffers);
  Choice best =
      time(problem, orders, {std::vector<bool>(count, false), buffers});
  // What is read in all of a step would hold its sender up for as long.
  std::vector<bool> lent(count, true);
  for (size_t v = 0; v < count; ++v)
    lent[v] = !problem.isOfStep(static_cast<int>(v));
  Choice trial = time(problem, orders, {lent, buffers});
  if (trial.timing.stepNs <= best.timing.stepNs)
    return trial;
  for (int i = 0; i < kMostTrials; ++i) {
    std::vector<bool> borrowed = trial.transfers.borrowed;
    for (int v : trial.timing.bottlenecks)
      borrowed[v] = false;
    if (borrowed == trial.transfers.borrowed)
      break;
    trial = time(problem, orders, {borrowed, buffers});
    if (trial.timing.stepNs <= best.timing.stepNs)
      best = trial;
  }
  return best;
}

/// A value that is read many stages further on would stop its sender again and
/// again. It gets as many buffers as it takes, if the step is much shorter
/// then.
Choice addBuffers(const ScheduleProblem &problem, const UnitOrders &orders,
                  Choice chosen) {
  Choice best = chosen, trial = chosen;
  for (int i = 0; i < kMostTrials && !trial.timing.bottlenecks.empty(); ++i) {
    Transfers more = trial.transfers;
    for (int v : std::set<int>(trial.timing.bottlenecks.begin(),
                               trial.timing.bottlenecks.end())) {
      if (!more.borrowed[v])
        more.buffers[v] = std::min(
            2 * more.buffers[v], std::max(problem.microBatches, kSendBuffers));
      more.borrowed[v] = false;
    }
    if (more.buffers == trial.transfers.buffers &&
        more.borrowed == trial.transfers.borrowed)
      break;
    trial = time(problem, orders, more);
    if (trial.timing.stepNs < best.timing.stepNs)
      best = trial;
  }
  if (best.timing.stepNs > (1 - kLeastGain) * chosen.timing.stepNs)
    return chosen;
  for (size_t v = 0; v < problem.values.size(); ++v)
    if (int &buffers = best.transfers.buffers[v]; buffers > kSendBuffers)
      buffers = std::max(kSendBuffers, best.timing.inFlight[v]);
  return time(problem, orders, best.transfers);
}

} // namespace

Schedule buildSchedule(const ScheduleProblem &problem,
                       const UnitOrders &orders) {
  Choice choice = addBuffers(problem, orders, chooseBorrowed(problem, orders));
  Schedule schedule;
  schedule.transfers = std::move(choice.transfers);
  schedule.stepNs = choice.timing.stepNs;
  schedule.bubble = choice.timing.bubble;
  schedule.remark = orders.remark;
  buildPrograms(problem, orders, schedule);
  return schedule;
}

} // namespace partita::schedule

//===- Schedule.cpp - Order of units on every device ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Schedule.h"

#include "compiler/schedule/Programs.h"
#include "compiler/schedule/Registry.h"
#include "compiler/schedule/Timing.h"

namespace partita::schedule {
namespace {

// Each time, what holds up the critical path is copied; few times are enough
// where a way that is shorter than the critical one becomes the next.
constexpr int kMostTrials = 16;

struct Choice {
  Transfers transfers;
  Timing timing;
};

/// Receivers borrow all values, if that makes the step no longer than if they
/// copied all; else those that do not hold up their senders.
Choice chooseTransfers(const ScheduleProblem &problem,
                       const UnitOrders &orders) {
  const size_t count = problem.values.size();
  auto time = [&](const std::vector<bool> &borrowed) {
    Choice choice{{borrowed, std::vector<int>(count, kSendBuffers)}, {}};
    choice.timing = timeOrders(problem, orders, choice.transfers);
    return choice;
  };
  Choice best = time(std::vector<bool>(count, false));
  Choice trial = time(std::vector<bool>(count, true));
  if (trial.timing.stepNs <= best.timing.stepNs)
    return trial;
  for (int i = 0; i < kMostTrials && !trial.timing.culprits.empty(); ++i) {
    std::vector<bool> borrowed = trial.transfers.borrowed;
    for (int v : trial.timing.culprits)
      borrowed[v] = false;
    trial = time(borrowed);
    if (trial.timing.stepNs <= best.timing.stepNs)
      best = trial;
  }
  return best;
}

} // namespace

Schedule buildSchedule(const ScheduleProblem &problem,
                       const ScheduleKind &kind) {
  const UnitOrders orders = kind.order(problem);
  Choice choice = chooseTransfers(problem, orders);
  Schedule schedule;
  schedule.transfers = std::move(choice.transfers);
  schedule.stepNs = choice.timing.stepNs;
  schedule.bubble = choice.timing.bubble;
  buildPrograms(problem, orders, schedule);
  return schedule;
}

} // namespace partita::schedule

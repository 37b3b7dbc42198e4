//===- SharedSteps.cpp - Which sequences share a step ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/SharedSteps.h"

#include <algorithm>

namespace partita::feed {

/// A step waits for others for no longer than this part of the time of the step
/// before it.
static constexpr int kPatience = 2;

SharedSteps::SharedSteps(std::vector<Plan> plans, int sequences)
    : plans(std::move(plans)), sequences(size_t(sequences)) {}

std::vector<size_t> SharedSteps::find(const std::vector<int> &waiting,
                                      size_t plan) const {
  const int count = plans[plan].sequences;
  std::vector<size_t> positions;
  uint64_t seen = 0;
  for (size_t i = 0; i < waiting.size(); ++i) {
    const uint64_t bit = uint64_t(1) << place(waiting[i], plan);
    if (waiting[i] / count != waiting.front() / count || (seen & bit) != 0)
      continue;
    seen |= bit;
    positions.push_back(i);
  }
  return positions;
}

size_t SharedSteps::choose(const std::vector<int> &waiting) const {
  // What was not measured yet is to others as it was predicted to be.
  const Plan &one = plans.front();
  const double scale = one.took.count() > 0 && one.predicted_ns > 0
                           ? double(one.took.count()) / one.predicted_ns
                           : 1;
  auto timeOf = [&](const Plan &plan, size_t shared) {
    return (plan.took.count() > 0 ? double(plan.took.count())
                                  : plan.predicted_ns * scale) /
           double(shared);
  };
  size_t best = 0;
  double least = timeOf(one, 1);
  for (size_t i = plans.size() - 1; i > 0; --i) {
    const size_t shared = find(waiting, i).size();
    if (int(shared) == plans[i].sequences)
      return i;
    if (shared > 1 && timeOf(plans[i], shared) < least) {
      least = timeOf(plans[i], shared);
      best = i;
    }
  }
  return best;
}

bool SharedSteps::isFull(const std::vector<int> &waiting) const {
  return int(find(waiting, plans.size() - 1).size()) == plans.back().sequences;
}

SharedSteps::Clock::time_point
SharedSteps::latestBegin(int sequence, Clock::time_point earliest) const {
  if (!areShared())
    return earliest;
  const size_t most = size_t(plans.back().sequences),
               first = size_t(sequence) / most * most;
  Clock::time_point latest = earliest;
  for (size_t i = first; i < std::min(first + most, sequences.size()); ++i)
    if (sequences[i].answered && sequences[i].pause <= patience)
      latest = std::max(latest, *sequences[i].answered + patience);
  return latest;
}

void SharedSteps::hasCome(int sequence, Clock::time_point now) {
  Sequence &own = sequences[size_t(sequence)];
  ++own.requests;
  if (own.answered)
    own.pause = now - *own.answered;
  own.answered.reset();
}

void SharedSteps::wasAnswered(int sequence, Clock::time_point now) {
  if (Sequence &own = sequences[size_t(sequence)]; --own.requests == 0)
    own.answered = now;
}

void SharedSteps::tookTime(size_t plan, Clock::duration time) {
  if (Plan &own = plans[plan]; own.took.count() == 0 || time < own.took)
    own.took = time;
  patience = time / kPatience;
}

} // namespace partita::feed

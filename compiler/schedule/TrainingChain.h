//===- TrainingChain.h - A pipeline that is trained, in general -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many micro-batches a stage holds is a matter of the order alone. So it is
// known before a model is cut, from a chain of equal stages.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_TRAININGCHAIN_H
#define PARTITA_COMPILER_SCHEDULE_TRAININGCHAIN_H

#include "compiler/schedule/Schedule.h"

#include <vector>

namespace partita::schedule {

struct TrainingChain {
  std::vector<int> deviceOf; ///< by stage
  int microBatches = 1;
  bool isSplit = false;         ///< backward is two units
  bool hasLastBackward = false; ///< of the last stage, too
};

/// Stages of a model that is trained: forward, backward, update. A forward and
/// a backward take 100 each, and so does each half of a backward that is split.
/// Where the last stage has no backward, its forward takes 200.
ScheduleProblem makeProblem(const TrainingChain &chain);

/// The most micro-batches that each stage holds at a time, by what they hold.
struct HeldMicroBatches {
  /// Of what forward leaves: until the gradients of values have read it, or
  /// until those of weights have, too.
  std::vector<int> untilValues, untilWeights;
  /// Of what the gradients of values leave for those of weights.
  std::vector<int> betweenGradients;
};

/// Those of a chain, by orders of its problem.
HeldMicroBatches countHeld(const ScheduleProblem &problem,
                           const UnitOrders &orders);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_TRAININGCHAIN_H

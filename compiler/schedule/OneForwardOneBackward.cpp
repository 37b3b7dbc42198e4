//===- OneForwardOneBackward.cpp - A backward as soon as there is one -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PipeDream's flush (Narayanan et al., 2021). Three devices, four
// micro-batches:
//
//   cpu:0   0 1 2   .   .   0b 3 1b   2b    3b
//   cpu:1   . 0 1     0b   2 1b 3 2b     3b
//   cpu:2   . . 0 0b 1 1b 2 2b 3 3b
//
// A stage begins with as many forwards as there are stages after it. Then each
// further forward is followed by a backward. So it holds what its backward
// needs of that many micro-batches and one, however many a step has. The bubble
// is that of GPipe. The last stage has no backward unit: its gradients follow
// each micro-batch at once.
//
// With several stages a device, lap by lap, this is `interleaved`.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

namespace partita::schedule {

const ScheduleKind kOneForwardOneBackward = {
    .name = "1f1b",
    .summary = "each backward as soon as it can be computed, so "
               "that few micro-batches are held",
    .isForTraining = true,
    .microBatches = getTwoPerStage,
    .order = [](const ScheduleProblem &problem) {
      return orderOneByOne(problem, "1f1b", /*ahead=*/2);
    }};

} // namespace partita::schedule

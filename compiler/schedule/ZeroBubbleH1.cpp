//===- ZeroBubbleH1.cpp - Weight gradients fill the holes of 1F1B ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ZB-H1 (Qi et al., 2023). The backward of a stage is split: other stages wait
// for the gradients of its values (i), and nobody for those of its weights (w).
// Three devices, four micro-batches, all units of the same length:
//
//   cpu:0   0 1 2  .  .  0i 0w 3  1i 1w 2i 2w 3i 3w
//   cpu:1   . 0 1  .  0i 2  1i 0w 3  2i 1w 3i 2w 3w
//   cpu:2   . . 0  0i 1  1i 2  2i 0w 3  3i 1w 2w 3w
//
// Forwards and gradients of values go as by 1F1B. Gradients of weights follow d
// micro-batches later on the d-th device. So every device holds what they need
// of at most as many micro-batches as there are devices, as the first one does
// by 1F1B. The bubble is (p - 1) / (3 m + p - 1), a third of it.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

namespace partita::schedule {

const ScheduleKind kZeroBubbleH1 = {
    .name = "zb_h1",
    .summary = "1f1b, with gradients of weights where devices "
               "would wait",
    .isForTraining = true,
    .splitsBackward = true,
    .microBatches = getTwoPerStage,
    .order = [](const ScheduleProblem &problem) {
      return orderOneByOne(problem, "zb_h1", /*ahead=*/1);
    }};

} // namespace partita::schedule

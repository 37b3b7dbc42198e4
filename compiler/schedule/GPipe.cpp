//===- GPipe.cpp - All micro-batches forward, then all backward -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Huang et al., 2019. Three devices, three micro-batches, each backward (b)
// twice as long as its forward:
//
//   cpu:0   0 1 2 . . . . . . . . 0b  1b  2b
//   cpu:1   . 0 1 2 . . . 0b  1b  2b
//   cpu:2   . . 0 0b  1 1b  2 2b
//
// A stage holds what its backward needs of all micro-batches. The last stage
// has no backward unit: its gradients follow each micro-batch at once.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

namespace partita::schedule {

const ScheduleKind kGPipe = {.name = "gpipe",
                             .summary =
                                 "all micro-batches forward, then all backward",
                             .isForTraining = true,
                             .microBatches = getTwoPerStage,
                             .order = orderBreadthFirst};

} // namespace partita::schedule

//===- Interleaved.cpp - 1F1B with several stages a device ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Narayanan et al., 2021. Two devices, four stages, four micro-batches, in the
// order of each device; stages 2 and 3 (primed) are the second lap:
//
//   cpu:0   0 1 0' 1' 2 0'b 3 1'b 2' 0b 3' 1b 2'b 3'b 2b 3b
//   cpu:1   0 1 0' 1' 2 0b 3 1b 2' 3' 2b 3b
//
// As many micro-batches as there are devices, or a few more, go through all
// laps before the next ones begin. A device begins with the forwards of all
// laps but the last, and two for each device after it. Then each further
// forward is followed by a backward.
//
// With v laps a stage takes a v-th of the time, and so does each hole: the
// bubble is (p - 1) / (v m + p - 1). The price is v times the transfers, and
// more that is held: the first device begins with (v + 1) p - 2 forwards, each
// of a v-th of the layers, where 1F1B begins with p - 1 of them all.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

namespace partita::schedule {

const ScheduleKind kInterleaved = {
    .name = "interleaved",
    .summary = "1f1b with two stages a device, in turn, so that "
               "devices wait half as long",
    .isForTraining = true,
    .stagesPerDevice = 2,
    .microBatches = getTwoPerDevice,
    .order = [](const ScheduleProblem &problem) {
      return orderOneByOne(problem, "interleaved", /*ahead=*/2);
    }};

} // namespace partita::schedule

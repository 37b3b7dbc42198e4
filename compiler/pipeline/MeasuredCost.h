//===- MeasuredCost.h - Time of a cluster on a measured machine -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_MEASUREDCOST_H
#define PARTITA_COMPILER_PIPELINE_MEASUREDCOST_H

#include "compiler/pipeline/MachineModel.h"

namespace partita::pipeline {

/// Nanoseconds of a cluster, from the tables of a team. A library call takes
/// the time of its shape, with weights that are in a cache; its epilogue; and
/// the time to bring the weights, if the step touches more than the caches
/// hold. A kernel takes the time of its elementwise work or that of its bytes,
/// whichever is longer. `compute` and `memory` say how many times as long
/// either takes with the other devices at work.
double getMeasuredNs(const ClusterWork &work, const StepFootprint &step,
                     const MeasuredTeam &team, int64_t lanes, double compute,
                     double memory);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_MEASUREDCOST_H

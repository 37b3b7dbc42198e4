//===- MeasuredCost.h - Time of a cluster on a measured machine -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_MEASUREDCOST_H
#define PARTITA_COMPILER_PIPELINE_COST_MEASUREDCOST_H

#include "compiler/pipeline/cost/MachineModel.h"

namespace partita::pipeline {

/// What the devices that work at the same time do to each other.
struct Contention {
  int64_t devices = 1; ///< at work, in all
  double cache = 1;    ///< of them, on one large cache
  /// How many times as long computing takes with all at work, and moving bytes
  /// that no cache holds with all doing so.
  double compute = 1, memory = 1;
};

/// Time of a cluster, from the tables of a team. A library call takes the time
/// of its shape, with operands that are in a cache; its epilogue; and the time
/// to bring weights and write results that the step has driven out of the
/// caches. A kernel takes the time of its elementwise work or that of its
/// bytes, whichever is longer.
ClusterTime getMeasuredTime(const ClusterWork &work, const StepFootprint &step,
                            const MeasuredTeam &team, int64_t lanes,
                            const Contention &contention);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_MEASUREDCOST_H

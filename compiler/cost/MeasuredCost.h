//===- MeasuredCost.h - Time of a cluster on a measured machine -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_MEASUREDCOST_H
#define PARTITA_COMPILER_COST_MEASUREDCOST_H

#include "compiler/cost/CostModel.h"
#include "compiler/cost/MachineFile.h"

namespace partita::codegen {
class Backend;
} // namespace partita::codegen

namespace partita {

/// How much devices that work at the same time slow each other down.
struct Contention {
  int64_t devices = 1; ///< that work at the same time
  double cache = 1;    ///< of these, on one large cache
  /// Slowdown factors: `compute` of computing while all devices compute,
  /// `memory` of moving bytes that no cache holds while all devices do so.
  double compute = 1, memory = 1;
};

/// The time of a cluster, from the tables of a team. The time of a library call
/// has three parts: the time measured for its shape with operands in a cache,
/// the time of its epilogue, and the time to read operands and write results
/// that the step has evicted from the caches. A kernel takes the time of its
/// elementwise work or that of its bytes, whichever is longer. `backend` says
/// what a call is: that of the device, which may not be the module's.
ClusterTime getMeasuredTime(const ClusterWork &work, const StepFootprint &step,
                            const MeasuredTeam &team, int64_t lanes,
                            const Contention &contention,
                            const codegen::Backend &backend);

} // namespace partita

#endif // PARTITA_COMPILER_COST_MEASUREDCOST_H

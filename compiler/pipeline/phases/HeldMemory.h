//===- HeldMemory.h - What clusters hold on their device --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_COST_HELDMEMORY_H
#define PARTITA_COMPILER_PIPELINE_COST_HELDMEMORY_H

#include "compiler/pipeline/partition/Balance.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Phases.h"
#include "compiler/schedule/TrainingChain.h"

#include <vector>

namespace partita::pipeline {

/// What the memory of stages is made of, before they are cut. `placeOf`: by
/// node, the place of the cluster that decides where it is, among those that
/// decide for themselves. In a model that is not trained that is the node.
///
/// A device holds parameters and other states, sums of gradients, what lasts
/// from a unit of a micro-batch to another one, by `held` in as many copies as
/// the schedule needs, and what is alive within a unit. `isSplit`: backward is
/// two units. The limit is left open.
BalanceMemory estimateHeldMemory(const PartitionGraph &graph,
                                 const Phases &phases,
                                 const std::vector<int> &placeOf,
                                 const schedule::HeldMicroBatches &held,
                                 bool isSplit);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_COST_HELDMEMORY_H

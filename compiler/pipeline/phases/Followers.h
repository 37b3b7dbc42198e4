//===- Followers.h - Gradients and updates stay with their nodes -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PHASES_FOLLOWERS_H
#define PARTITA_COMPILER_PIPELINE_PHASES_FOLLOWERS_H

#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Phases.h"

#include <vector>

namespace partita::pipeline {

/// For each cluster of a model that is trained: the forward cluster on whose
/// stage it is computed; itself, if it is forward. The gradients of a node have
/// the node's name. The update of a parameter goes with those that read the
/// parameter. What belongs to no node goes with the last cluster.
std::vector<int> findLeaders(const PartitionGraph &graph, const Phases &phases);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PHASES_FOLLOWERS_H

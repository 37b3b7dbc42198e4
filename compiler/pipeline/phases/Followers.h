//===- Followers.h - Gradients stay with their nodes --------*- C++ -*-===//
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

/// Joins clusters that no cut may part. Values of forward go from earlier
/// clusters to later ones, gradients the other way. Where one goes against that
/// all the same, the two are on one stage, and so are all between them: the
/// gradients of several readers of a value may be computed together, and what
/// makes a gradient may lie between parts of one node.
void joinReturning(const PartitionGraph &graph, const Phases &phases,
                   std::vector<int> &leaders);

/// The ops whose block says where they are: all; of a model that is trained,
/// the heaviest of each cluster of forward, which the others follow. So do the
/// loss, and what replicas gather of a parameter.
llvm::DenseSet<mlir::Operation *> findNamed(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PHASES_FOLLOWERS_H

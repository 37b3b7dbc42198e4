//===- KeptValues.h - What of forward is kept for gradients -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_RECOMPUTE_KEPTVALUES_H
#define PARTITA_COMPILER_PIPELINE_RECOMPUTE_KEPTVALUES_H

#include "compiler/pipeline/partition/PartitionGraph.h"

#include "llvm/ADT/DenseSet.h"

namespace partita::pipeline {

/// Clusters of one stage, by their numbers in the graph, ascending.
struct StageClusters {
  std::vector<int> forward;
  std::vector<int> backward; ///< they read what is kept of forward
};

/// What is kept of a stage's forward until its gradients are computed.
struct KeptValues {
  std::vector<int> repeated; ///< clusters that are computed again, ascending
  /// Bytes that are kept of a micro-batch, and those that would be if nothing
  /// were computed again.
  int64_t bytes = 0, allBytes = 0;
};

/// Chooses as few bytes as possible, such that the rest of what gradients read
/// follows from them by clusters for which `mayRepeat` holds. A cluster is
/// repeated only if that saves bytes.
///
/// `whole`: all but what enters the stage may be dropped. Where gradients of a
/// micro-batch follow its forward at once (`atOnce`), the stage is cut into
/// segments (Segments.h), and what enters each is kept: without that all would
/// be there again at the same time.
KeptValues chooseKeptValues(const PartitionGraph &graph,
                            const StageClusters &stage, bool whole, bool atOnce,
                            llvm::function_ref<bool(int)> mayRepeat);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_RECOMPUTE_KEPTVALUES_H

//===- Balance.h - Cuts a chain of clusters into stages ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_BALANCE_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_BALANCE_H

#include <cstdint>
#include <vector>

namespace partita::pipeline {

/// A value that one cluster makes (`producer` -1: an input of the model) and
/// others read. `transferNs` is the time it takes to bring it to another stage.
struct BalanceValue {
  int producer = -1;
  std::vector<int> consumers;
  double transferNs = 0;
  int64_t bytes = 0;
};

/// What clusters need of a device's memory, by estimate.
struct BalanceMemory {
  std::vector<int64_t> parameterBytes; ///< by parameter
  /// By cluster: the parameters that it reads. A stage holds each once.
  std::vector<std::vector<int>> parameters;
  /// By cluster: bytes of the values that are alive while it computes.
  std::vector<int64_t> liveBytes;
  /// A stage must not need more; 0: as little as can be, whatever the time.
  int64_t limit = 0;
};

/// The stage of each cluster. The clusters, in a topological order, are cut
/// into min(stages, clusters) runs that are not empty, so that the slowest
/// stage is as fast as can be; a stage takes `unitNs`, the time of its
/// clusters, and the time of each value that it reads and an earlier stage
/// makes, once. Exact, by dynamic programming over the cuts: for k stages over
/// the first j clusters,
///   best(k, j) = min over i of max(best(k - 1, i), stage(i, j)).
/// Among equals the one that transfers least. Time: clusters^2 * stages.
///
/// Where branches run side by side, the order is one of many. So a few clusters
/// at a time then change between the slowest stage and another one, for as long
/// as that makes the slowest stage faster; values still flow to the same stage
/// or a later one.
///
/// With `memory`, only cuts count whose stages all keep to the limit: a stage
/// needs its parameters, the most that is alive in it, and a second buffer for
/// what it sends. If there is none, the cut whose largest stage needs least.
std::vector<int> balanceStages(const std::vector<double> &clusterNs,
                               const std::vector<BalanceValue> &values,
                               int stages, double unitNs,
                               const BalanceMemory *memory = nullptr);

/// What each of the stages needs, by that estimate.
std::vector<int64_t> estimateMemory(const std::vector<BalanceValue> &values,
                                    const std::vector<int> &stageOf,
                                    const BalanceMemory &memory);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_BALANCE_H

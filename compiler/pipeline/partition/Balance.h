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
/// others read. `transferNs` is the time to transfer it to another stage.
struct BalanceValue {
  int producer = -1;
  std::vector<int> consumers;
  double transferNs = 0;
  int64_t bytes = 0;
  /// Nothing flows: the consumers must not be in an earlier stage.
  bool isOrder = false;
};

/// An estimate of the memory that clusters need on a device.
struct BalanceMemory {
  std::vector<int64_t> parameterBytes; ///< by parameter
  /// By cluster: the parameters that it reads. A stage holds each once.
  std::vector<std::vector<int>> parameters;
  /// By cluster: bytes of the values that are alive while it computes.
  std::vector<int64_t> liveBytes;
  /// What lasts from one unit of a micro-batch to another one of the same
  /// stage, which holds several micro-batches at a time.
  struct Lasting {
    int64_t bytes = 0;
    int span = 0; ///< of `copies`
  };
  std::vector<Lasting> lasting;
  /// By cluster: those that it reads in the later unit.
  std::vector<std::vector<int>> lastingOf;
  /// By span, by stage: how many micro-batches of such a value a stage holds.
  std::vector<std::vector<int>> copies;
  /// The most bytes that a stage may need. 0: minimize the bytes, whatever the
  /// time.
  int64_t limit = 0;
};

/// What a stage on one kind of device takes.
struct BalanceKind {
  std::vector<double> clusterNs; ///< by cluster
  /// By value: the time to bring it there from an earlier stage.
  std::vector<double> transferNs;
  double unitNs = 0;
};

/// The stage of each cluster. The clusters, in a topological order, are cut
/// into min(stages, clusters) runs that are not empty, so that the slowest
/// stage is as fast as possible. A stage takes `unitNs`, the time of its
/// clusters, and, once each, the transfer times of the values that it reads
/// from earlier stages; the times are those of its kind. The cut is optimal. It
/// is found by dynamic programming: for k stages over the first j clusters,
///   best(k, j) = min over i of max(best(k - 1, i), stage(k, i, j)).
/// Among equal cuts the one that transfers least wins. Time: clusters^2 *
/// stages.
///
/// A graph with parallel branches has many topological orders, and this
/// considers only one. So afterwards it exchanges a few clusters at a time
/// between the slowest stage and another one, as long as that makes the slowest
/// stage faster. Values still flow only to the same stage or a later one.
///
/// With `memory`, only cuts count in which all stages stay within the limit. A
/// stage needs its parameters, the most bytes that are alive in it at a time,
/// what lasts in it, and a second buffer for the values that it sends. If there
/// is no such cut, the one whose largest stage needs the least memory is taken.
///
/// `kindOf`: by stage, an index of `kinds`. The stages stay in their order, so
/// the first run of clusters goes to the first stage, whatever its kind is.
std::vector<int> balanceStages(const std::vector<BalanceKind> &kinds,
                               const std::vector<int> &kindOf,
                               const std::vector<BalanceValue> &values,
                               const BalanceMemory *memory = nullptr);

/// The memory that each of the stages needs, by that estimate.
std::vector<int64_t> estimateMemory(const std::vector<BalanceValue> &values,
                                    const std::vector<int> &stageOf,
                                    const BalanceMemory &memory);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_BALANCE_H

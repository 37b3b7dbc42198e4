//===- Balance.cpp - Cuts a chain of clusters into stages -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Balance.h"

#include <algorithm>
#include <limits>

namespace partita::pipeline {
namespace {

struct Price {
  double slowest = std::numeric_limits<double>::infinity();
  double transfers = std::numeric_limits<double>::infinity();

  bool operator<(const Price &other) const {
    return slowest != other.slowest ? slowest < other.slowest
                                    : transfers < other.transfers;
  }
};

} // namespace

std::vector<int> balanceStages(const std::vector<double> &clusterNs,
                               const std::vector<BalanceValue> &values,
                               int stages, double unitNs) {
  int clusters = static_cast<int>(clusterNs.size());
  stages = std::min(stages, clusters);
  if (stages <= 1)
    return std::vector<int>(clusters, 0);

  std::vector<std::vector<int>> made(clusters), read(clusters);
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    if (values[v].producer < 0)
      continue; // the host feeds every stage alike
    made[values[v].producer].push_back(v);
    for (int consumer : values[v].consumers)
      read[consumer].push_back(v);
  }

  std::vector<std::vector<Price>> best(stages + 1,
                                       std::vector<Price>(clusters + 1));
  std::vector<std::vector<int>> cut(stages + 1,
                                    std::vector<int>(clusters + 1, 0));
  best[0][0] = {0, 0};
  std::vector<int> arrivesFor(values.size(), -1);
  for (int j = 1; j <= clusters; ++j) {
    // Grow the last stage [i, j) towards the front.
    double work = unitNs, arriving = 0;
    for (int i = j - 1; i >= 0; --i) {
      work += clusterNs[i];
      for (int v : read[i])
        if (arrivesFor[v] != j) {
          arrivesFor[v] = j;
          arriving += values[v].transferNs;
        }
      for (int v : made[i])
        if (arrivesFor[v] == j) // made and read inside: nothing arrives
          arriving -= values[v].transferNs;
      for (int k = 1; k <= std::min(stages, i + 1); ++k) {
        Price price = best[k - 1][i];
        price.slowest = std::max(price.slowest, work + arriving);
        price.transfers += arriving;
        if (price < best[k][j]) {
          best[k][j] = price;
          cut[k][j] = i;
        }
      }
    }
  }

  std::vector<int> stageOf(clusters);
  for (int k = stages, j = clusters; k > 0; --k) {
    for (int i = cut[k][j]; i < j; ++i)
      stageOf[i] = k - 1;
    j = cut[k][j];
  }
  return stageOf;
}

} // namespace partita::pipeline

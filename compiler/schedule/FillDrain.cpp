//===- FillDrain.cpp - A wave of micro-batches runs through the stages ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPipe's forward half (Huang et al., 2019). Four devices, a stage each, six
// micro-batches; time goes to the right:
//
//   cpu:0   0 1 2 3 4 5 . . .
//   cpu:1   . 0 1 2 3 4 5 . .
//   cpu:2   . . 0 1 2 3 4 5 .
//   cpu:3   . . . 0 1 2 3 4 5
//           ^ fill      ^ drain
//
// A step of m micro-batches over p devices takes m + p - 1 times the slowest
// stage, so the bubble is (p - 1) / (m + p - 1).
//
// In wave w a stage computes micro-batch w - depth, where its depth counts the
// transfers on the longest way to it. A device with several stages in a wave
// takes the lower micro-batch first: it holds fewer of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/PipelineStages.h"
#include "compiler/schedule/Registry.h"

#include <algorithm>

namespace partita::schedule {

/// Transfers on the longest way from an input to each stage.
static std::vector<int> getDepths(const ScheduleProblem &problem) {
  std::vector<std::vector<int>> reads(problem.stages.size());
  for (const ScheduleValue &value : problem.values)
    for (int consumer : value.consumers)
      if (value.producer >= 0 && value.producer != consumer)
        reads[consumer].push_back(value.producer);
  std::vector<int> depths(problem.stages.size(), 0);
  for (size_t s = 0; s < depths.size(); ++s)
    for (int producer : reads[s])
      depths[s] = std::max(depths[s], depths[producer] +
                                          (problem.stages[producer].device !=
                                           problem.stages[s].device));
  return depths;
}

static UnitOrders orderFillDrain(const ScheduleProblem &problem) {
  const std::vector<int> depths = getDepths(problem);
  std::vector<std::vector<int>> stages(problem.devices); // the deepest first
  int deepest = 0;
  for (int s = 0; s < static_cast<int>(depths.size()); ++s) {
    stages[problem.stages[s].device].push_back(s);
    deepest = std::max(deepest, depths[s]);
  }
  UnitOrders orders;
  orders.ofDevice.resize(problem.devices);
  for (int d = 0; d < problem.devices; ++d) {
    std::stable_sort(stages[d].begin(), stages[d].end(),
                     [&](int a, int b) { return depths[a] > depths[b]; });
    for (int wave = 0; wave < deepest + problem.microBatches; ++wave)
      for (int s : stages[d])
        if (int m = wave - depths[s];
            m >= 0 && m < problem.microBatches && problem.runs(s, m))
          orders.ofDevice[d].push_back({s, m});
  }
  return orders;
}

/// Twice the stages keep a pipeline busy for most of a step.
const ScheduleKind kFillDrain = {
    .name = "fill_drain",
    .summary = "devices work side by side, each on another micro-batch",
    .microBatches = getTwoPerStage,
    .order = orderFillDrain};

} // namespace partita::schedule

//===- MachineModel.cpp - What a device can do ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/MachineModel.h"

#include <algorithm>

using namespace mlir;

namespace partita::pipeline {

double MachineModel::computeNs(nn::CostKind kind, int64_t flops) const {
  double rate = pointwiseFlops;
  switch (kind) {
  case nn::CostKind::dot:
  case nn::CostKind::conv:
    rate = contractionFlops;
    break;
  case nn::CostKind::attention:
    rate = attentionFlops;
    break;
  case nn::CostKind::reduction:
    rate = reductionFlops;
    break;
  case nn::CostKind::movement:
  case nn::CostKind::none:
    return 0;
  case nn::CostKind::pointwise:
    break;
  }
  return flops / rate * 1e9;
}

double MachineModel::clusterNs(ArrayRef<Operation *> ops,
                               int64_t memoryBytes) const {
  double compute = 0;
  int64_t unfusedBytes = 0;
  for (Operation *op : ops)
    if (auto costed = dyn_cast<nn::CostOpInterface>(op)) {
      nn::Cost cost = costed.getCost();
      compute += computeNs(cost.kind, cost.flops);
      unfusedBytes += cost.bytes;
    }
  // A gather reads only a part of its table.
  memoryBytes = std::min(memoryBytes, unfusedBytes);
  return instructionNs + std::max(compute, memoryBytes / bytes * 1e9);
}

double MachineModel::transferNs(int64_t size) const {
  return transferLatencyNs + size / transferBytes * 1e9;
}

int64_t countFlops(ArrayRef<Operation *> ops) {
  int64_t flops = 0;
  for (Operation *op : ops)
    if (auto costed = dyn_cast<nn::CostOpInterface>(op))
      flops += costed.getCost().flops;
  return flops;
}

} // namespace partita::pipeline

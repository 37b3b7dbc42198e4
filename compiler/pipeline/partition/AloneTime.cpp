//===- AloneTime.cpp - What one device would take for a model -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/AloneTime.h"

#include "compiler/cost/CostModels.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/phases/Phases.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/support/Try.h"

#include <set>

using namespace mlir;

namespace partita::pipeline {

bool isCut(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) {
    return isa<dist::DistDialect>(op.getDialect());
  });
}

FailureOr<DenseF64ArrayAttr> predictAlone(func::FuncOp function) {
  auto models = PARTITA_TRY(CostModels::getAlone(function));
  const Phases phases(function);
  std::optional<std::pair<double, double>> best; // of a micro-batch, of a step
  for (const auto &model : models->getAll()) {
    PartitionGraph graph = PARTITA_TRY(PartitionGraph::build(function, *model));
    std::pair<double, double> ns(0, 0);
    // That of a model's only stage computes gradients at once.
    std::set<dist::Phase> units;
    for (const ClusterNode &node : graph.nodes) {
      dist::Phase phase = phases.get(node.ops.front());
      if (phase == dist::Phase::backward)
        phase = dist::Phase::forward;
      (phase == dist::Phase::forward ? ns.first : ns.second) +=
          node.time.ns + (units.insert(phase).second ? model->getUnitNs() : 0);
    }
    if (!best || ns.first + ns.second < best->first + best->second)
      best = ns;
  }
  return DenseF64ArrayAttr::get(function.getContext(),
                                {best->first, best->second});
}

} // namespace partita::pipeline

//===- DistPriceStages.cpp - Times of what was decided anew ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"

namespace partita::pipeline {
#define GEN_PASS_DEF_DISTPRICESTAGESPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

struct DistPriceStagesPass
    : impl::DistPriceStagesPassBase<DistPriceStagesPass> {
  using DistPriceStagesPassBase::DistPriceStagesPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getModelFunction(getOperation());
    if (failed(function))
      return signalPassFailure();
    FailureOr<const CostModels *> models = CostModels::get(*function);
    if (failed(models))
      return signalPassFailure();
    const SmallVector<int64_t> places = getDevices(*function);
    for (auto stage : function->getOps<dist::StageOp>()) {
      if (!stage->hasAttr(codegen::kTargetAttr))
        continue;
      stage->walk([](Operation *op) {
        op->removeAttr(kPriceAttr);
        op->removeAttr(kWorkKeyAttr);
      });
      FailureOr<PartitionGraph> graph = PartitionGraph::build(
          *function, (*models)->at(places[stage.getStage()]),
          &stage.getBody().front());
      if (failed(graph))
        return signalPassFailure();
      graph->writePrices();
    }
  }
};

} // namespace
} // namespace partita::pipeline

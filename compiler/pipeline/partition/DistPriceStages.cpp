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
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTPRICESTAGESPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

struct DistPriceStagesPass
    : impl::DistPriceStagesPassBase<DistPriceStagesPass> {
  using DistPriceStagesPassBase::DistPriceStagesPassBase;

  LogicalResult run(func::FuncOp function) override {
    auto models = PARTITA_TRY(CostModels::get(function));
    const SmallVector<int64_t> places = getDevices(function);
    for (auto stage : function.getOps<dist::StageOp>()) {
      if (!stage->hasAttr(codegen::kTargetAttr))
        continue;
      stage->walk([](Operation *op) {
        op->removeAttr(kPriceAttr);
        op->removeAttr(kWorkKeyAttr);
      });
      PartitionGraph graph = PARTITA_TRY(
          PartitionGraph::build(function, models->at(places[stage.getStage()]),
                                &stage.getBody().front()));
      graph.writePrices();
    }
    return success();
  }
};

} // namespace
} // namespace partita::pipeline

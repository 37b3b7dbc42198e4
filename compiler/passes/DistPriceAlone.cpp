//===- DistPriceAlone.cpp - The whole model on one device -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/passes/Phases.h"
#include "compiler/pipeline/partition/AloneTime.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::passes {

#define GEN_PASS_DEF_DISTPRICEALONEPASS
#include "compiler/passes/Passes.h.inc"

namespace {

/// Whether devices will cut tensors, or join what their replicas have.
bool willBeCut(func::FuncOp function) {
  auto axes = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr);
  if (!axes)
    return false;
  const bool isJoined = function->hasAttr(dist::kZeroAttr) ||
                        llvm::any_of(function.getBody().front(),
                                     llvm::IsaPred<nn::SumMicroBatchesOp>);
  return llvm::any_of(axes.getAsRange<dist::AxisAttr>(), [&](auto axis) {
    return axis.getName() != dist::kStageAxis && axis.getSize() > 1 &&
           (axis.getName() != dist::kDataAxis || isJoined);
  });
}

struct DistPriceAlonePass : impl::DistPriceAlonePassBase<DistPriceAlonePass> {
  using DistPriceAlonePassBase::DistPriceAlonePassBase;

  LogicalResult run(func::FuncOp function) override {
    ModuleOp module = getOperation();
    if (!willBeCut(function) || pipeline::isCut(function))
      return success();
    // Inside of the module, for a pass may run others on what it has inside.
    auto copy =
        cast<ModuleOp>(OpBuilder::atBlockEnd(module.getBody()).clone(*module));
    OpPassManager pm(ModuleOp::getOperationName());
    FuseOptions options;
    options.winograd = winograd;
    options.libraryCalls = libraryCalls;
    options.reference = reference;
    pm.addPass(createCSEPass()); // as behind cuts
    addClusterPasses(pm, options, fuse::FusePlace::any);
    FailureOr<DenseF64ArrayAttr> alone = failure();
    if (succeeded(runPipeline(pm, copy)))
      alone = pipeline::predictAlone(*getModelFunction(copy));
    copy.erase();
    if (failed(alone))
      return failure();
    function->setAttr(kAloneAttr, *alone);
    return success();
  }
};

} // namespace
} // namespace partita::passes

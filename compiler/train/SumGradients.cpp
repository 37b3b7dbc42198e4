//===- SumGradients.cpp - Gradients of several micro-batches --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Ports.h"
#include "compiler/train/Passes.h"
#include "compiler/train/StepSums.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_SUMGRADIENTSPASS
#include "compiler/train/Passes.h.inc"

namespace {

/// Dimension 0 of each input counts samples.
LogicalResult countSamples(func::FuncOp function) {
  Builder b(function.getContext());
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
    auto name = function.getArgAttrOfType<StringAttr>(i, nn::kNameAttr);
    if (type.getRank() == 0)
      return emitError(UnknownLoc::get(function.getContext()))
             << "--micro-batches: the input '" << (name ? name.getValue() : "")
             << "' has no dimension, and dimension 0 of every input counts "
                "samples where gradients are summed over micro-batches; give "
                "its value (--constant), or leave out --micro-batches";
    function.setArgAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
  }
  return success();
}

struct SumGradientsPass : impl::SumGradientsPassBase<SumGradientsPass> {
  using SumGradientsPassBase::SumGradientsPassBase;

  LogicalResult run(func::FuncOp function) {
    Operation *end = function.getBody().front().getTerminator();
    ImplicitLocOpBuilder b(
        NameLoc::get(StringAttr::get(function.getContext(), "loss")), end);
    StepSums sums(function, b, microBatches);
    PARTITA_TRY(countSamples(function));
    PARTITA_TRY(sums.findCount());
    std::vector<autodiff::Result> results = {
        {sums.ofStep(end->getOperand(0)).get(), "loss"}};
    llvm::StringMap<FlatSymbolRefAttr> weights;
    for (auto weight : getOperation().getOps<nn::WeightOp>())
      weights[weight.getOrigin()] =
          FlatSymbolRefAttr::get(weight.getSymNameAttr());
    // There may be gradients of inputs, too.
    for (const auto &[name, gradient] : sums.getGradients())
      results.push_back(
          {sums.ofStep(gradient, weights.lookup(name)).get(), name + ".grad"});
    autodiff::setResults(function, results);
    sums.markStep(static_cast<unsigned>(results.size()));
    return success();
  }

  void runOnOperation() override {
    func::FuncOp function = autodiff::getModelFunction(getOperation());
    if (!function || failed(run(function)))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::train

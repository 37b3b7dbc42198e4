//===- MarkStates.cpp - States of weights that are trained ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Ports.h"
#include "compiler/train/Passes.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_MARKSTATESPASS
#include "compiler/train/Passes.h.inc"

void makeState(ModuleOp module, nn::WeightOp weight) {
  weight.setState(true);
  module.walk([&](nn::ParameterOp parameter) {
    if (parameter.getWeightAttr().getAttr() == weight.getSymNameAttr())
      parameter.setState(true);
  });
}

namespace {

struct MarkStatesPass : impl::MarkStatesPassBase<MarkStatesPass> {
  using MarkStatesPassBase::MarkStatesPassBase;

  void runOnOperation() override {
    llvm::DenseSet<Attribute> trained;
    for (auto weight : getOperation().getOps<nn::WeightOp>())
      if (weight->hasAttr(autodiff::kTrainedAttr)) {
        weight.setState(true);
        trained.insert(weight.getSymNameAttr());
      }
    getOperation().walk([&](nn::ParameterOp parameter) {
      if (trained.contains(parameter.getWeightAttr().getAttr()))
        parameter.setState(true);
    });
    getOperation()->setAttr(dist::kFullMicroBatchesAttr,
                            UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace partita::train

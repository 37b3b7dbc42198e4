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

void makeStates(ModuleOp module, ArrayRef<nn::WeightOp> weights) {
  llvm::DenseSet<Attribute> names;
  for (nn::WeightOp weight : weights) {
    weight.setState(true);
    names.insert(weight.getSymNameAttr());
  }
  module.walk([&](nn::ParameterOp parameter) {
    if (names.contains(parameter.getWeightAttr().getAttr()))
      parameter.setState(true);
  });
}

namespace {

struct MarkStatesPass : impl::MarkStatesPassBase<MarkStatesPass> {
  using MarkStatesPassBase::MarkStatesPassBase;

  void runOnOperation() override {
    SmallVector<nn::WeightOp> trained;
    for (auto weight : getOperation().getOps<nn::WeightOp>())
      if (weight->hasAttr(autodiff::kTrainedAttr))
        trained.push_back(weight);
    makeStates(getOperation(), trained);
    getOperation()->setAttr(dist::kFullMicroBatchesAttr,
                            UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace partita::train

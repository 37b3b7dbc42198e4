//===- ScatterUponSums.cpp - Rows that are added where sums lie -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_SCATTERUPONSUMSPASS
#include "compiler/train/Passes.h.inc"

namespace {

/// The scatter upon zeros that nothing but `add` reads, which adds it to an
/// accumulator; or null.
nn::ScatterOp getScatter(nn::AddOp add, Value &accumulator) {
  for (auto [sum, part] : {std::pair(add.getLhs(), add.getRhs()),
                           std::pair(add.getRhs(), add.getLhs())}) {
    auto scatter = part.getDefiningOp<nn::ScatterOp>();
    if (!sum.getDefiningOp<nn::AccumulatorOp>() || !scatter ||
        !scatter->hasOneUse() || scatter.getCombine() != nn::ReduceKind::sum)
      continue;
    if (!matchPattern(scatter.getX(), m_AnyZeroFloat()) &&
        !matchPattern(scatter.getX(), m_Zero()))
      continue;
    accumulator = sum;
    return scatter;
  }
  return {};
}

struct ScatterUponSumsPass
    : impl::ScatterUponSumsPassBase<ScatterUponSumsPass> {
  using ScatterUponSumsPassBase::ScatterUponSumsPassBase;

  void runOnOperation() override {
    SmallVector<nn::AddOp> adds;
    getOperation().walk([&](nn::AddOp add) { adds.push_back(add); });
    for (nn::AddOp add : adds) {
      Value accumulator;
      nn::ScatterOp scatter = getScatter(add, accumulator);
      if (!scatter)
        continue;
      scatter->moveBefore(add);
      scatter.getXMutable().assign(accumulator);
      add.replaceAllUsesWith(scatter.getResult());
      add.erase();
    }
  }
};

} // namespace
} // namespace partita::train

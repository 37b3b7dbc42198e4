//===- FormAccumulators.cpp - Sums over micro-batches ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Passes.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_FORMACCUMULATORSPASS
#include "compiler/train/Passes.h.inc"

namespace {

struct FormAccumulatorsPass
    : impl::FormAccumulatorsPassBase<FormAccumulatorsPass> {
  using FormAccumulatorsPassBase::FormAccumulatorsPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto count =
          function->getAttrOfType<IntegerAttr>(dist::kMicroBatchesAttr);
      if (!count || count.getInt() < 2)
        continue;
      int64_t number = 0;
      function.walk([&](nn::SumMicroBatchesOp sum) {
        if (sum.getAccumulator())
          return;
        OpBuilder b(sum);
        Value accumulator =
            nn::AccumulatorOp::create(b, sum.getLoc(), sum.getType(), number++);
        Value added = nn::AddOp::create(b, sum.getLoc(), sum.getType(),
                                        accumulator, sum.getX());
        sum.getXMutable().assign(added);
        sum.getAccumulatorMutable().assign(accumulator);
      });
    }
  }
};

} // namespace
} // namespace partita::train

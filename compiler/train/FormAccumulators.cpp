//===- FormAccumulators.cpp - Sums over micro-batches ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Passes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_FORMACCUMULATORSPASS
#include "compiler/train/Passes.h.inc"

namespace {

/// The devices along the axis "data".
int64_t countReplicas(func::FuncOp function) {
  if (auto axes = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr))
    for (auto axis : axes.getAsRange<dist::AxisAttr>())
      if (axis.getName() == dist::kDataAxis)
        return axis.getSize();
  return 1;
}

struct FormAccumulatorsPass
    : impl::FormAccumulatorsPassBase<FormAccumulatorsPass> {
  using FormAccumulatorsPassBase::FormAccumulatorsPassBase;

  /// Replicas compute the micro-batches of a step together, each as many.
  LogicalResult dealOut(func::FuncOp function, IntegerAttr &count) {
    const int64_t replicas = countReplicas(function);
    if (replicas < 2 || !getOperation()->hasAttr(dist::kFullStepsAttr))
      return success();
    if (count.getInt() % replicas != 0)
      return emitError(getOperation().getLoc())
             << "the micro-batches of a step (--micro-batches "
             << count.getInt() << ") cannot be dealt out to " << replicas
             << " replicas (--data-parallel) in equal parts: give a multiple "
                "of "
             << replicas << ", e.g. "
             << llvm::divideCeil(count.getInt(), replicas) * replicas;
    count = IntegerAttr::get(count.getType(), count.getInt() / replicas);
    function->setAttr(dist::kMicroBatchesAttr, count);
    return success();
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto count =
          function->getAttrOfType<IntegerAttr>(dist::kMicroBatchesAttr);
      if (!count)
        continue;
      if (failed(dealOut(function, count)))
        return signalPassFailure();
      if (count.getInt() < 2)
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

//===- CombineLanes.cpp - Sums over micro-batches in a fixed tree ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Passes.h"

#include "dialects/nn/grad/GradientAttr.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_COMBINELANESPASS
#include "compiler/train/Passes.h.inc"

namespace {

/// Adds up the lanes of a sum: `first`, `first` + `stride`, and so on. Each of
/// n replicas, a power of two, has every n-th lane of all of them, and so a
/// branch of the tree.
Value addLanes(nn::SumMicroBatchesOp sum, int64_t lanes,
               nn::ClusterAttr cluster, int64_t first = 0, int64_t stride = 1) {
  OpBuilder b(sum);
  if (first + stride >= lanes) {
    auto lane = cast<nn::SumMicroBatchesOp>(b.clone(*sum));
    lane.setLane(first);
    if (first > 0)
      lane->removeAttr(nn::kGradientAttr);
    return lane;
  }
  Value x = addLanes(sum, lanes, cluster, first, 2 * stride),
        y = addLanes(sum, lanes, cluster, first + stride, 2 * stride);
  auto both = nn::AddOp::create(b, sum.getLoc(), sum.getType(), x, y);
  both->setAttr(nn::kClusterAttr, cluster);
  return both;
}

struct CombineLanesPass : impl::CombineLanesPassBase<CombineLanesPass> {
  using CombineLanesPassBase::CombineLanesPassBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      int64_t next = 0; // cluster
      function.walk([&](Operation *op) {
        if (auto cluster = op->getAttrOfType<nn::ClusterAttr>(nn::kClusterAttr))
          next = std::max(next, cluster.getNumber() + 1);
      });
      SmallVector<nn::SumMicroBatchesOp> sums(
          function.getOps<nn::SumMicroBatchesOp>());
      for (nn::SumMicroBatchesOp sum : sums) {
        auto accumulator =
            sum.getAccumulator()
                ? sum.getAccumulator().getDefiningOp<nn::AccumulatorOp>()
                : nullptr;
        if (!accumulator || accumulator.getLanes() < 2 || sum.getLane())
          continue;
        auto cluster = nn::ClusterAttr::get(&getContext(), next++,
                                            nn::ClusterKind::kernel);
        sum.replaceAllUsesWith(addLanes(sum, accumulator.getLanes(), cluster));
        sum.erase();
      }
    }
  }
};

} // namespace
} // namespace partita::train

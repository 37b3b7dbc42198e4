//===- DelayBroadcasts.cpp - Compute before elements are repeated ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/Passes.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_DELAYBROADCASTSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

struct DelayBroadcast : OpInterfaceRewritePattern<nn::PointwiseOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(nn::PointwiseOpInterface pointwise,
                                PatternRewriter &rewriter) const override {
    Operation *op = pointwise.getOperation();
    nn::BroadcastOp like;
    for (Value operand : op->getOperands()) {
      if (nn::getSplat(operand))
        continue;
      auto broadcast = operand.getDefiningOp<nn::BroadcastOp>();
      if (!broadcast)
        return failure();
      if (!like)
        like = broadcast;
      if (broadcast.getDims() != like.getDims() ||
          broadcast.getX().getType().getShape() !=
              like.getX().getType().getShape())
        return failure();
    }
    if (!like)
      return failure();

    ArrayRef<int64_t> shape = like.getX().getType().getShape();
    SmallVector<Value> small;
    for (Value operand : op->getOperands()) {
      if (DenseElementsAttr splat = nn::getSplat(operand)) {
        auto type = RankedTensorType::get(shape, splat.getElementType());
        small.push_back(nn::ConstantOp::create(rewriter, operand.getLoc(),
                                               splat.resizeSplat(type)));
        continue;
      }
      small.push_back(operand.getDefiningOp<nn::BroadcastOp>().getX());
    }
    auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
    Operation *copy = rewriter.clone(*op);
    copy->setOperands(small);
    copy->getResult(0).setType(
        RankedTensorType::get(shape, resultType.getElementType()));
    rewriter.replaceOpWithNewOp<nn::BroadcastOp>(
        op, resultType, copy->getResult(0), like.getDims());
    return success();
  }
};

struct DelayBroadcastsPass
    : impl::DelayBroadcastsPassBase<DelayBroadcastsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DelayBroadcast>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::simplify

//===- ExpandAttention.cpp - Attention as products and a softmax ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Passes.h"
#include "dialects/nn/grad/Term.h"

using namespace mlir;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

namespace partita::autodiff {

#define GEN_PASS_DEF_EXPANDATTENTIONPASS
#include "compiler/autodiff/Passes.h.inc"

void expand(nn::AttentionOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Term q(b, op.getQ()), k(b, op.getK()), v(b, op.getV());
  const Shape shape = {q.shape()[0], q.shape()[1], q.shape()[2], k.shape()[2]},
              batch = {0, 1}, last = {3}, rows = {2};
  Term scores = q.make<nn::DotOp>(RankedTensorType::get(shape, q.element()),
                                  q.get(), k.get(), batch, batch, last, last) *
                op.getScale().convertToDouble();
  auto spread = [&](Value mask) {
    return Term(b, mask).broadcast(allDims(4), shape);
  };
  if (op.getMaskMul())
    scores = scores * spread(op.getMaskMul());
  if (op.getMaskAdd())
    scores = scores + spread(op.getMaskAdd());
  Term weights = scores.make<nn::SoftmaxOp>(scores.type(), scores.get(),
                                            int64_t(3), /*log=*/false);
  Term result = weights.make<nn::DotOp>(op.getType(), weights.get(), v.get(),
                                        batch, batch, last, rows);
  op.replaceAllUsesWith(result.get());
  op.erase();
}

namespace {

struct ExpandAttentionPass
    : impl::ExpandAttentionPassBase<ExpandAttentionPass> {
  void runOnOperation() override {
    getOperation().walk([](nn::AttentionOp op) { expand(op); });
  }
};

} // namespace
} // namespace partita::autodiff

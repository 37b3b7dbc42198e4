//===- DecomposeOps.cpp - Ops of several reductions, one by one -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/NNToLinalg.h"
#include "compiler/codegen/kernels/Reductions.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::codegen {
namespace {

Value castTo(ImplicitLocOpBuilder &b, Value x, Type element) {
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getElementType() == element)
    return x;
  return nn::CastOp::create(b, type.clone(element), x, true);
}

Value reduceAndRepeat(ImplicitLocOpBuilder &b, nn::ReduceKind kind, Value x,
                      int64_t dim) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(type.getShape()), dims;
  shape.erase(shape.begin() + dim);
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (i != dim)
      dims.push_back(i);
  auto reduced =
      nn::ReduceOp::create(b, type.clone(shape), kind, x, ArrayRef{dim});
  // Where a NaN takes part, the differences with it are NaN anyway.
  if (kind == nn::ReduceKind::max)
    reduced->setAttr(kIgnoreNaNAttr, b.getUnitAttr());
  return nn::BroadcastOp::create(b, type, reduced, dims);
}

Value softmax(ImplicitLocOpBuilder &b, Value x, int64_t dim, bool log) {
  Type type = x.getType();
  Value max = reduceAndRepeat(b, nn::ReduceKind::max, x, dim);
  Value moved = nn::SubOp::create(b, type, x, max);
  Value exp = nn::ExpOp::create(b, type, moved);
  Value sum = reduceAndRepeat(b, nn::ReduceKind::sum, exp, dim);
  if (log)
    return nn::SubOp::create(b, type, moved, nn::LogOp::create(b, type, sum));
  return nn::DivOp::create(b, type, exp, sum);
}

void decompose(nn::SoftmaxOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type element = op.getType().getElementType();
  Value x = castTo(b, op.getX(), getAccumulator(element));
  Value result = softmax(b, x, op.getDim(), op.getLog());
  op.replaceAllUsesWith(castTo(b, result, element));
  op.erase();
}

void decompose(nn::AttentionOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type element = op.getType().getElementType(), wide = getAccumulator(element);
  Value q = castTo(b, op.getQ(), wide), k = castTo(b, op.getK(), wide),
        v = castTo(b, op.getV(), wide);
  auto qType = cast<RankedTensorType>(q.getType());
  auto kType = cast<RankedTensorType>(k.getType());
  SmallVector<int64_t> shape(qType.getShape());
  shape[3] = kType.getDimSize(2);
  auto type = RankedTensorType::get(shape, wide);
  const SmallVector<int64_t> batch{0, 1};
  Value scores = nn::DotOp::create(b, type, q, k, batch, batch,
                                   ArrayRef<int64_t>{3}, ArrayRef<int64_t>{3});
  auto scale = nn::ConstantOp::create(
      b, type,
      DenseElementsAttr::get(
          type, b.getFloatAttr(wide, op.getScale().convertToDouble())));
  scores = nn::MulOp::create(b, type, scores, scale);
  auto mask = [&](Value x) -> Value {
    return nn::BroadcastOp::create(b, type, castTo(b, x, wide),
                                   ArrayRef<int64_t>{0, 1, 2, 3});
  };
  if (op.getMaskMul())
    scores = nn::MulOp::create(b, type, scores, mask(op.getMaskMul()));
  if (op.getMaskAdd())
    scores = nn::AddOp::create(b, type, scores, mask(op.getMaskAdd()));
  Value weights = softmax(b, scores, 3, false);
  Value result =
      nn::DotOp::create(b, op.getType().clone(wide), weights, v, batch, batch,
                        ArrayRef<int64_t>{3}, ArrayRef<int64_t>{2});
  op.replaceAllUsesWith(castTo(b, result, element));
  op.erase();
}

/// Finds the largest elements first. Both reductions read the same numbers, for
/// they are stages of one kernel.
void decompose(nn::WindowArgMaxOp op) {
  if (op.getMax())
    return;
  OpBuilder b(op);
  Value max = nn::WindowReduceOp::create(
      b, op.getLoc(), op.getType().clone(op.getX().getType().getElementType()),
      nn::ReduceKind::max, op.getX(), op.getWindow(), op.getStrides(),
      op.getDilations(), op.getPadsLow(), op.getPadsHigh());
  op.getMaxMutable().assign(max);
}

} // namespace

void decomposeOps(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body))
    llvm::TypeSwitch<Operation *>(&op)
        .Case<nn::SoftmaxOp, nn::AttentionOp, nn::WindowArgMaxOp>(
            [](auto found) { decompose(found); });
}

} // namespace partita::codegen

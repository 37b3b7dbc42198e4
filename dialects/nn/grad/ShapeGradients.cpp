//===- ShapeGradients.cpp - Derivatives of ops that move elements ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/Term.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace partita::nn;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

FailureOr<Cotangents> ReshapeOp::buildVjp(const Term &dy) {
  return Cotangents{dy.reshape(getX().getType().getShape())};
}

FailureOr<Cotangents> TransposeOp::buildVjp(const Term &dy) {
  return Cotangents{dy.transpose(invertPermutationVector(getPermutation()))};
}

FailureOr<Cotangents> BroadcastOp::buildVjp(const Term &dy) {
  ArrayRef<int64_t> from = getX().getType().getShape();
  Shape repeated;
  for (int64_t dim = 0; dim < dy.rank(); ++dim) {
    const auto *found = llvm::find(getDims(), dim);
    if (found == getDims().end() ||
        from[found - getDims().begin()] != dy.shape()[dim])
      repeated.push_back(dim);
  }
  return Cotangents{dy.sum(repeated).reshape(from)};
}

FailureOr<Cotangents> SliceOp::buildVjp(const Term &dy) {
  Term taken = dy.spread(getStrides());
  Shape high;
  for (auto [size, start, count] :
       llvm::zip_equal(getX().getType().getShape(), getStarts(), taken.shape()))
    high.push_back(size - start - count);
  return Cotangents{taken.padOrCrop(getStarts(), high)};
}

FailureOr<Cotangents> ReverseOp::buildVjp(const Term &dy) {
  return Cotangents{dy.reverse(getDims())};
}

FailureOr<Cotangents> PadOp::buildVjp(const Term &dy) {
  Shape limits;
  for (auto [low, size] :
       llvm::zip_equal(getLow(), getX().getType().getShape()))
    limits.push_back(low + size);
  Term inner = dy.slice(getLow(), limits);
  // The border alone: a difference of sums would cancel.
  Term border = dy - inner.padOrCrop(getLow(), getHigh());
  return Cotangents{inner, border.sum(allDims(dy.rank()))};
}

FailureOr<Cotangents> ConcatOp::buildVjp(const Term &dy) {
  Cotangents operands;
  Shape starts(dy.rank(), 0), limits(dy.shape());
  for (Value operand : getOperands()) {
    limits[getDim()] =
        starts[getDim()] + getTensorType(operand).getDimSize(getDim());
    operands.push_back(dy.slice(starts, limits));
    starts[getDim()] = limits[getDim()];
  }
  return operands;
}

/// Rows that were looked up get their sums back.
FailureOr<Cotangents> GatherOp::buildVjp(const Term &dy) {
  Term indices(dy.b(), getIndices());
  RankedTensorType from = getX().getType();
  const int64_t dim = getDim(), size = from.getDimSize(dim),
                looked = indices.rank(),
                count = indices.type().getNumElements();
  if (dy.type().getNumElements() == 0) {
    return Cotangents{Value(), Value()};
  }
  // The dimensions of the indices come first, as rows of a matrix.
  Shape order;
  for (int64_t i = 0; i < looked; ++i)
    order.push_back(dim + i);
  for (int64_t i = 0; i < dy.rank(); ++i)
    if (i < dim || i >= dim + looked)
      order.push_back(i);
  Term rows = dy.transpose(order).reshape(
      {count, dy.type().getNumElements() / std::max<int64_t>(count, 1)});
  Term places = readIndices(indices, size).reshape({count});
  // A scatter ignores places outside of its rows.
  if (auto padding = (*this)->getAttrOfType<IntegerAttr>(kPaddingIndexAttr))
    places =
        select(places == static_cast<double>(padding.getInt()), -1, places);
  Term sums = scatterSum(places, rows, size);
  Shape shape = {size}, back;
  for (int64_t i = 0; i < from.getRank(); ++i) {
    back.push_back(i < dim ? i + 1 : i == dim ? 0 : i);
    if (i != dim)
      shape.push_back(from.getDimSize(i));
  }
  return Cotangents{sums.reshape(shape).transpose(back), Value()};
}

/// With one index along the dimension: its element, zero elsewhere, which is
/// pointwise. Otherwise elements are summed at their flat positions.
FailureOr<Cotangents> GatherElementsOp::buildVjp(const Term &dy) {
  Term indices(dy.b(), getIndices());
  RankedTensorType from = getX().getType();
  const int64_t dim = getDim();
  if (dy.type().getNumElements() == 0)
    return Cotangents{Value(), Value()};
  Term positions = readIndices(indices, from.getDimSize(dim));
  Shape one(from.getShape());
  one[dim] = 1;
  if (dy.shape() == ArrayRef(one)) {
    auto type = RankedTensorType::get(from.getShape(), dy.b().getI64Type());
    Term iota = dy.make<IotaOp>(type, dim);
    Shape dims = allDims(dy.rank());
    Term isThere = compare(ComparePredicate::eq, iota,
                           positions.broadcast(dims, from.getShape()));
    return Cotangents{select(isThere, dy.broadcast(dims, from.getShape()), 0.0),
                      Value()};
  }
  Term flat = positions.splat(0);
  int64_t stride = 1;
  for (int64_t i = from.getRank() - 1; i >= 0; --i) {
    Term index = i == dim ? positions : dy.make<IotaOp>(positions.type(), i);
    flat = flat + index * static_cast<double>(stride);
    stride *= from.getDimSize(i);
  }
  const int64_t count = dy.type().getNumElements();
  Term sums = scatterSum(flat.reshape({count}), dy.reshape({count, 1}),
                         from.getNumElements());
  return Cotangents{sums.reshape(from.getShape()), Value()};
}

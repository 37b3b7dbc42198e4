//===- Contraction.cpp - Matrix products and convolutions -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ops/Contraction.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IntegerProduct.h"
#include "compiler/import/math/Window.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

/// Of products of x and y.
static Type getProductElement(NodeImport &n, Value x, Value y) {
  return nn::isIntegerProduct(x.getType(), y.getType()) ? Type(n.b.getI32Type())
                                                        : n.elementOf(x);
}

Value makeDot(NodeImport &n, Value x, Value y, int64_t numBatch, int64_t xDim,
              int64_t yDim) {
  if (!x || !y)
    return {};
  Shape batch = to_vector(seq<int64_t>(0, numBatch));
  Shape shape(n.shapeOf(x).take_front(numBatch));
  for (auto [value, contracted] : {std::pair(x, xDim), std::pair(y, yDim)})
    for (int64_t i = numBatch; i < n.typeOf(value).getRank(); ++i)
      if (i != contracted)
        shape.push_back(n.shapeOf(value)[i]);
  if (n.shapeOf(x)[xDim] != n.shapeOf(y)[yDim]) {
    emitError(n.loc) << n.node.op_type() << ": the inner sizes of "
                     << x.getType() << " and " << y.getType() << " differ";
    return {};
  }
  RankedTensorType type =
      PARTITA_TRY(n.tensor(shape, getProductElement(n, x, y)));
  return n.make<nn::DotOp>(type, x, y, batch, batch, ArrayRef<int64_t>(xDim),
                           ArrayRef<int64_t>(yDim));
}

/// A vector takes part as a matrix with one row or column,
/// which then vanishes: nn.dot needs no such matrix.
Value makeMatMul(NodeImport &n, Value x, Value y) {
  if (!x || !y)
    return {};
  int64_t xRank = n.typeOf(x).getRank(), yRank = n.typeOf(y).getRank();
  if (xRank == 0 || yRank == 0)
    return n.refuse("an operand is a scalar");
  if (yRank <= 2)
    return makeDot(n, x, y, 0, xRank - 1, yRank == 1 ? 0 : yRank - 2);
  ArrayRef<int64_t> yBatch = n.shapeOf(y).drop_back(2);
  if (xRank == 1) {
    Shape shape(yBatch);
    shape.push_back(n.shapeOf(x)[0]);
    return makeDot(n, n.broadcastTo(x, shape), y, yBatch.size(), yBatch.size(),
                   yBatch.size());
  }
  // Both are stacks of matrices, or y is: broadcast the stacks.
  ArrayRef<int64_t> xBatch = n.shapeOf(x).drop_back(2);
  Shape batch(std::max(xBatch.size(), yBatch.size()), 1);
  for (ArrayRef<int64_t> other : {xBatch, yBatch})
    for (auto [i, size] : enumerate(other)) {
      int64_t &own = batch[batch.size() - other.size() + i];
      if (own != 1 && size != 1 && own != size)
        return n.refuse("the stacks of matrices do not broadcast: sizes " +
                        Twine(own) + " and " + Twine(size));
      if (own == 1)
        own = size;
    }
  auto stack = [&](Value value) {
    Shape shape(batch);
    append_range(shape, n.shapeOf(value).take_back(2));
    return n.broadcastTo(value, shape);
  };
  int64_t numBatch = batch.size();
  return makeDot(n, stack(x), stack(y), numBatch, numBatch + 1, numBatch);
}

Value makeConv(NodeImport &n, Value x, Value weights, Value outside) {
  if (!x || !weights)
    return {};
  ArrayRef<int64_t> shape = n.shapeOf(x), kernel = n.shapeOf(weights);
  if (shape.size() < 3 || kernel.size() != shape.size())
    return n.refuse("X and W must have the same rank, at least 3");
  int64_t groups = n.intAttr("group", 1);
  if (groups < 1 || shape[1] % groups != 0 || kernel[0] % groups != 0 ||
      kernel[1] != shape[1] / groups)
    return n.refuse(Twine(shape[1]) + " channels in " + Twine(groups) +
                    " groups do not fit weights with " + Twine(kernel[0]) +
                    " outputs and " + Twine(kernel[1]) + " inputs");
  std::optional<Shape> declared = n.intsAttr("kernel_shape");
  if (declared && ArrayRef(*declared) != kernel.drop_front(2))
    return n.refuse("kernel_shape differs from the shape of W");
  Window window =
      PARTITA_TRY(getWindow(n, shape.drop_front(2), kernel.drop_front(2)));
  Shape resultShape{shape[0], kernel[0]};
  append_range(resultShape, window.positions);
  RankedTensorType type =
      n.tensor(resultShape, getProductElement(n, x, weights));
  if (type && outside) {
    Shape low(2, 0), high(2, 0);
    append_range(low, window.low);
    append_range(high, window.high);
    x = n.pad(x, outside, low, high);
    window.low.assign(window.low.size(), 0);
    window.high = window.low;
  }
  if (!type || !x)
    return {};
  return n.make<nn::ConvOp>(type, x, weights, nn::ImageLayout::channels_first,
                            window.strides, window.dilations, window.low,
                            window.high, groups);
}

namespace {

LogicalResult importGemm(NodeImport &n) {
  Value x = n.input(0), y = n.input(1), bias = n.input(2);
  if (n.typeOf(x).getRank() != 2 || n.typeOf(y).getRank() != 2)
    return n.error("A and B must be matrices");
  const int64_t xDim = n.intAttr("transA", 0) ? 0 : 1,
                yDim = n.intAttr("transB", 0) ? 1 : 0;
  auto multiply = [&](Value p, Value q) {
    return makeDot(n, p, q, 0, xDim, yDim);
  };
  Value integers = PARTITA_TRY(
      dotDequantized(n, xDim, yDim, /*yColumn=*/1 - yDim, multiply));
  Value packed = PARTITA_TRY(integers || xDim == 0 ? FailureOr<Value>(Value())
                                                   : dotPacked(n, x, y, yDim));
  Value result = integers ? integers : packed ? packed : multiply(x, y);
  result = PARTITA_TRY(n.mul(result, n.floatAttr("alpha", 1)));
  if (double beta = n.floatAttr("beta", 1); bias && beta != 0) {
    bias = PARTITA_TRY(n.mul(bias, beta));
    if (n.opset < 7 && n.intAttr("broadcast", 0) == 0 &&
        n.shapeOf(bias) != n.shapeOf(result))
      return n.error("C differs in shape from the product, and the attribute "
                     "'broadcast' is not set");
    result = n.add(result, n.broadcastTo(bias, n.shapeOf(result)));
  }
  return n.result(0, result);
}

LogicalResult importConv(NodeImport &n) {
  Value bias = n.input(2);
  Value integers = PARTITA_TRY(convolveDequantized(n));
  Value result = integers ? integers : makeConv(n, n.input(0), n.input(1));
  if (bias && result) {
    ArrayRef<int64_t> shape = n.shapeOf(result);
    if (n.shapeOf(bias) != shape.slice(1, 1))
      return n.error("B must have one element an output channel");
    result = n.add(result, n.broadcastDims(bias, {1}, shape));
  }
  return n.result(0, result);
}

LogicalResult importMatMul(NodeImport &n) {
  Value x = n.input(0), y = n.input(1);
  auto multiply = [&](Value p, Value q) { return makeMatMul(n, p, q); };
  const int64_t xRank = n.typeOf(x).getRank(), yRank = n.typeOf(y).getRank();
  Value integers = PARTITA_TRY(dotDequantized(
      n, xRank - 1, std::max<int64_t>(yRank - 2, 0), yRank - 1, multiply));
  if (integers)
    return n.result(0, integers);
  Value packed = PARTITA_TRY(dotPacked(n, x, y, 0));
  return n.result(0, packed ? packed : multiply(x, y));
}

const OpRow contractionOps[] = {
    {"Conv", 1, 22, importConv},
    {"Gemm", 1, 13, importGemm},
    {"MatMul", 1, 13, importMatMul},
};

} // namespace

ArrayRef<OpRow> getContractionOps() { return contractionOps; }

} // namespace partita::import

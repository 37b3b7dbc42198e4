//===- IntegerProduct.cpp - Products of 8-bit integers --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/IntegerProduct.h"

#include "compiler/import/ops/Contraction.h"

#include <limits>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

bool isSmallInteger(NodeImport &n, Value value) {
  Type element = n.elementOf(value);
  return element.isSignlessInteger(8) || element.isUnsignedInteger(8);
}

/// Whether a zero point is known to be 0 everywhere.
bool isZero(NodeImport &n, Value zero) {
  if (!zero)
    return true;
  DenseElementsAttr known = n.getConstant(zero);
  return known && llvm::all_of(known.getValues<APInt>(),
                               [](const APInt &each) { return each.isZero(); });
}

Value widen(NodeImport &n, Value value) {
  return n.cast(value, n.b.getI32Type());
}

/// The same numbers as signed integers: the library wants them so on the right
/// side. Unsigned ones move down by 128, and so does their zero point.
Biased toSigned(NodeImport &n, Biased numbers) {
  if (!n.elementOf(numbers.value).isUnsignedInteger(8))
    return numbers;
  auto lower = [&](Value value) { return n.sub(widen(n, value), 128); };
  Value zero = numbers.zero
                   ? lower(numbers.zero)
                   : n.splat(-128, ArrayRef<int64_t>{}, n.b.getI32Type());
  return {n.cast(lower(numbers.value), n.b.getI8Type()), zero};
}

Value sumOver(NodeImport &n, Value value, ArrayRef<int64_t> dims) {
  return n.reduce(nn::ReduceKind::sum, widen(n, value), dims, /*keep=*/false);
}

/// A zero point in the shape of the result, if it is a number or has an element
/// for each place of `dim`; else null.
Value spreadZero(NodeImport &n, Value zero, ArrayRef<int64_t> shape,
                 int64_t dim) {
  zero = widen(n, zero);
  RankedTensorType type = n.typeOf(zero);
  if (type.getNumElements() == 1)
    return n.broadcastTo(n.reshape(zero, {}), shape);
  if (type.getRank() == 1 && type.getDimSize(0) == shape[dim])
    return n.broadcastDims(zero, {dim}, shape);
  return {};
}

/// Whether the exact sum of so many products of 8 bits fits i32.
bool fitsSum(int64_t depth) {
  return depth <= std::numeric_limits<int32_t>::max() / (255 * 128);
}

/// product * scaleX * scaleY as f32; scales are numbers, or that of y has an
/// element for each place of `dim`.
Value rescale(NodeImport &n, Value product, Value scaleX, Value scaleY,
              int64_t dim) {
  ArrayRef<int64_t> shape = n.shapeOf(product);
  scaleX = n.reshape(scaleX, {});
  const bool isNumber = n.typeOf(scaleY).getNumElements() == 1;
  Value factor = isNumber ? n.reshape(scaleY, {}) : scaleY;
  factor = n.mul(n.broadcastTo(scaleX, n.shapeOf(factor)), factor);
  factor = isNumber ? n.broadcastTo(factor, shape)
                    : n.broadcastDims(factor, {dim}, shape);
  return n.mul(n.cast(product, n.b.getF32Type()), factor);
}

/// What the first two inputs were dequantised from, with one scale for x, and
/// one for y or for each place of its dimension `yColumn`.
struct Pair {
  Dequantized x, y;
};
std::optional<Pair> findPair(NodeImport &n, int64_t yColumn) {
  auto find = [&](unsigned input) -> std::optional<Dequantized> {
    Value value = n.input(input);
    auto it = n.source.dequantized.find(value);
    if (it == n.source.dequantized.end() || it->second.block > 0 ||
        !n.elementOf(value).isF32() || !n.elementOf(it->second.scale).isF32() ||
        !isSmallInteger(n, it->second.numbers.value))
      return std::nullopt;
    return it->second;
  };
  std::optional<Dequantized> left = find(0), right = find(1);
  if (!left || !right || n.typeOf(left->scale).getNumElements() != 1)
    return std::nullopt;
  RankedTensorType scale = n.typeOf(right->scale);
  ArrayRef<int64_t> shape = n.shapeOf(right->numbers.value);
  if (scale.getNumElements() != 1 &&
      (right->axis != yColumn || scale.getRank() != 1 ||
       yColumn >= static_cast<int64_t>(shape.size()) ||
       scale.getDimSize(0) != shape[yColumn]))
    return std::nullopt;
  return Pair{*left, *right};
}

} // namespace

FailureOr<Value>
dotIntegers(NodeImport &n, Biased x, Biased y, int64_t xDim, int64_t yDim,
            llvm::function_ref<Value(Value x, Value y)> multiply) {
  if (!x.value || !y.value || !isSmallInteger(n, x.value) ||
      !isSmallInteger(n, y.value))
    return Value();
  const int64_t xRank = n.typeOf(x.value).getRank(),
                yRank = n.typeOf(y.value).getRank();
  if (xRank < 2 || yRank < 2 || (yRank > 2 && yRank > xRank) ||
      (yRank > 2 && n.shapeOf(x.value).take_front(xRank - 2).take_back(
                        yRank - 2) != n.shapeOf(y.value).drop_back(2)))
    return Value();
  y = toSigned(n, y);
  const bool xIsBiased = !isZero(n, x.zero), yIsBiased = !isZero(n, y.zero);
  Value product = PARTITA_TRY(multiply(x.value, y.value));
  if (!xIsBiased && !yIsBiased)
    return product;
  ArrayRef<int64_t> shape = n.shapeOf(product);
  const int64_t rank = shape.size(), row = rank - 2, column = rank - 1;
  Value a = xIsBiased ? spreadZero(n, x.zero, shape, row) : Value(),
        b = yIsBiased ? spreadZero(n, y.zero, shape, column) : Value();
  if ((xIsBiased && !a) || (yIsBiased && !b) ||
      (xIsBiased && n.typeOf(x.zero).getNumElements() != 1 && xRank != 2))
    return Value();
  if (xIsBiased) {
    Shape dims = to_vector(llvm::seq<int64_t>(rank - yRank, row));
    dims.push_back(column);
    Value sums = n.broadcastDims(sumOver(n, y.value, {yDim}), dims, shape);
    product = n.sub(product, n.mul(a, sums));
  }
  if (yIsBiased) {
    Shape dims = to_vector(llvm::seq<int64_t>(0, column));
    Value sums = n.broadcastDims(sumOver(n, x.value, {xDim}), dims, shape);
    product = n.sub(product, n.mul(b, sums));
  }
  if (xIsBiased && yIsBiased) {
    Value both = n.mul(a, b);
    product = n.add(product, n.mul(both, n.shapeOf(x.value)[xDim]));
  }
  return product;
}

FailureOr<Value> convolveIntegers(NodeImport &n, Biased x, Biased weights) {
  if (!x.value || !weights.value || !isSmallInteger(n, x.value) ||
      !isSmallInteger(n, weights.value) ||
      n.typeOf(weights.value).getRank() < 3)
    return Value();
  weights = toSigned(n, weights);
  const bool isBiased = !isZero(n, x.zero);
  if (!isZero(n, weights.zero) ||
      (isBiased && (n.typeOf(x.zero).getNumElements() != 1 ||
                    n.elementOf(x.zero) != n.elementOf(x.value))))
    return Value();
  // Outside of the image is the number that means 0.
  Value product = PARTITA_TRY(makeConv(
      n, x.value, weights.value, isBiased ? n.reshape(x.zero, {}) : Value()));
  if (!isBiased)
    return product;
  ArrayRef<int64_t> shape = n.shapeOf(product);
  Shape window =
      to_vector(llvm::seq<int64_t>(1, n.typeOf(weights.value).getRank()));
  Value sums = n.broadcastDims(sumOver(n, weights.value, window), {1}, shape);
  return n.sub(product, n.mul(spreadZero(n, x.zero, shape, 1), sums));
}

FailureOr<Value>
dotDequantized(NodeImport &n, int64_t xDim, int64_t yDim, int64_t yColumn,
               llvm::function_ref<Value(Value x, Value y)> multiply) {
  std::optional<Pair> pair = findPair(n, yColumn);
  if (!pair || n.typeOf(n.input(0)).getRank() < 2 ||
      !fitsSum(n.shapeOf(n.input(0))[xDim]))
    return Value();
  FailureOr<Value> product =
      dotIntegers(n, pair->x.numbers, pair->y.numbers, xDim, yDim, multiply);
  if (failed(product) || !*product)
    return product;
  return rescale(n, *product, pair->x.scale, pair->y.scale,
                 n.typeOf(*product).getRank() - 1);
}

FailureOr<Value> convolveDequantized(NodeImport &n) {
  std::optional<Pair> pair = findPair(n, /*yColumn=*/0);
  if (!pair)
    return Value();
  RankedTensorType weights = n.typeOf(n.input(1));
  if (weights.getRank() < 3 || weights.getDimSize(0) == 0 ||
      !fitsSum(weights.getNumElements() / weights.getDimSize(0)))
    return Value();
  FailureOr<Value> product =
      convolveIntegers(n, pair->x.numbers, pair->y.numbers);
  if (failed(product) || !*product)
    return product;
  return rescale(n, *product, pair->x.scale, pair->y.scale, 1);
}

} // namespace partita::import

//===- IndexMath.cpp - Positions, and arithmetic on them ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/IndexMath.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <numeric>

using namespace llvm;
using namespace mlir;

namespace partita::import {

Value makeIota(NodeImport &n, ArrayRef<int64_t> shape, int64_t dim) {
  RankedTensorType type = n.tensor(shape, n.b.getI64Type());
  return type ? n.make<nn::IotaOp>(type, dim) : Value();
}

Value clampTo(NodeImport &n, Value x, double low, double high) {
  return n.min(n.max(x, low), high);
}

Value wrapIndex(NodeImport &n, Value index, int64_t size) {
  index = n.cast(index, n.b.getI64Type());
  return n.select(n.lt(index, 0), n.add(index, size), index);
}

Value isWithin(NodeImport &n, Value x, double low, double high) {
  return n.binary<nn::AndOp>(n.ge(x, low), n.lt(x, high));
}

Shape toLast(int64_t rank, int64_t dim) {
  Shape permutation;
  for (int64_t i = 0; i < rank; ++i)
    if (i != dim)
      permutation.push_back(i);
  permutation.push_back(dim);
  return permutation;
}

Shape fromLast(int64_t rank, int64_t dim) {
  return invertPermutationVector(toLast(rank, dim));
}

/// Unsigned numbers of 64 bits and signed ones have the same order but for the
/// first bit.
static Value flipFirstBit(NodeImport &n, Value x) {
  return n.binary<nn::XorOp>(x, -0x1p63);
}

static Value bitcast(NodeImport &n, Value x, Type element) {
  return x ? n.make<nn::BitcastOp>(RankedTensorType::get(n.shapeOf(x), element),
                                   x)
           : Value();
}

Value toOrdered(NodeImport &n, Value x, bool compared) {
  if (!x)
    return {};
  Type element = n.elementOf(x);
  if (element.isF64())
    return x;
  if (isa<FloatType>(element))
    return n.cast(x, n.b.getF32Type());
  if (element.isUnsignedInteger(64)) {
    x = bitcast(n, x, n.b.getI64Type());
    return compared ? flipFirstBit(n, x) : x;
  }
  bool isSmall =
      element.getIntOrFloatBitWidth() < 32 || element.isSignlessInteger(32);
  return n.cast(x, isSmall ? n.b.getI32Type() : n.b.getI64Type());
}

Value fromOrdered(NodeImport &n, Value x, Type element, bool compared) {
  if (!x || !element.isUnsignedInteger(64))
    return n.cast(x, element, /*saturate=*/false);
  return bitcast(n, compared ? flipFirstBit(n, x) : x, element);
}

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                         std::multiplies<>());
}

/// [n] -> [n, 1] -> [n, s] -> [n * s], without the last zeros.
Value spread(NodeImport &n, Value x, int64_t first, ArrayRef<int64_t> strides) {
  if (!x || all_of(strides, [](int64_t s) { return s == 1; }))
    return x;
  Value zero = n.splat(0, {}, n.elementOf(x));
  for (auto [i, stride] : enumerate(strides)) {
    if (stride == 1)
      continue;
    int64_t dim = first + static_cast<int64_t>(i);
    if (!x)
      return {};
    Shape shape(n.shapeOf(x)), wide(shape);
    wide.insert(wide.begin() + dim + 1, 1);
    Shape low(wide.size(), 0), high(wide.size(), 0);
    high[dim + 1] = stride - 1;
    int64_t size = shape[dim];
    shape[dim] = size * stride;
    Value spaced = n.reshape(n.pad(n.reshape(x, wide), zero, low, high), shape);
    Shape starts(shape.size(), 0), ones(shape.size(), 1);
    shape[dim] = size == 0 ? 0 : (size - 1) * stride + 1;
    x = n.slice(spaced, starts, shape, ones);
  }
  return x;
}

Value padOrCrop(NodeImport &n, Value x, ArrayRef<int64_t> low,
                ArrayRef<int64_t> high, Value border) {
  if (!x)
    return {};
  Shape starts, limits, before, after;
  for (auto [size, l, h] : zip_equal(n.shapeOf(x), low, high)) {
    // What is cut off beyond the elements is cut off the far side's border.
    int64_t total = std::max<int64_t>(size + l + h, 0);
    starts.push_back(std::min(std::max<int64_t>(-l, 0), size));
    limits.push_back(std::max(starts.back(), size - std::max<int64_t>(-h, 0)));
    before.push_back(std::min(std::max<int64_t>(l, 0), total));
    after.push_back(total - before.back() - (limits.back() - starts.back()));
  }
  if (!border)
    border = n.splat(0, {}, n.elementOf(x));
  return n.pad(n.slice(x, starts, limits, Shape(starts.size(), 1)), border,
               before, after);
}

} // namespace partita::import

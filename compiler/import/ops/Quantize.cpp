//===- Quantize.cpp - Numbers as integers with a scale --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "compiler/import/math/IntegerProduct.h"
#include "compiler/import/model/TensorData.h"
#include "compiler/import/ops/Contraction.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// A scale or zero point in the shape of the tensor: one for all, one for each
/// place of the axis, or one for each block along it.
Value spreadParameter(NodeImport &n, Value parameter, ArrayRef<int64_t> shape,
                      StringRef what) {
  if (!parameter)
    return {};
  RankedTensorType type = n.typeOf(parameter);
  int64_t rank = shape.size(), block = n.intAttr("block_size", 0);
  if (type.getNumElements() == 1 && block == 0)
    return n.broadcastTo(n.reshape(parameter, {}), shape);
  int64_t axis = PARTITA_TRY(n.axisAttr(1, rank));
  if (block == 0) {
    if (type.getRank() == 1 && type.getDimSize(0) == shape[axis])
      return n.broadcastDims(parameter, {axis}, shape);
  } else if (block > 0 && type.getRank() == rank) {
    Shape expected(shape), wide(shape), dims;
    expected[axis] = divideCeil(shape[axis], block);
    if (type.getShape() == ArrayRef(expected)) {
      wide[axis] = expected[axis];
      wide.insert(wide.begin() + axis + 1, block);
      for (int64_t i = 0; i < rank; ++i)
        dims.push_back(i <= axis ? i : i + 1);
      Shape whole(shape);
      whole[axis] = expected[axis] * block;
      return n.part(n.reshape(n.broadcastDims(parameter, dims, wide), whole),
                    axis, 0, shape[axis]);
    }
  }
  return n.refuse(what + " does not fit the tensor, its axis and block_size");
}

/// The least and greatest number of an integer type.
std::pair<double, double> getRange(IntegerType type) {
  unsigned width = type.getWidth();
  if (type.isUnsigned())
    return {0, std::ldexp(1.0, width) - 1};
  return {-std::ldexp(1.0, width - 1), std::ldexp(1.0, width - 1) - 1};
}

/// x, a float of at least 32 bits, rounded, moved by the zero point (null: 0)
/// and kept in the range of `element`.
Value quantize(NodeImport &n, Value x, Value zero, Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return n.cast(zero ? n.add(x, zero) : x, element,
                  n.intAttr("saturate", 1) != 0);
  x = n.unary<nn::RoundEvenOp>(x);
  if (zero)
    x = n.add(x, zero);
  auto [low, high] = getRange(integer);
  return n.cast(clampTo(n, x, low, high), element);
}

Type getWide(NodeImport &n, Type element) {
  return element.isF64() ? element : n.b.getF32Type();
}

LogicalResult importQuantizeLinear(NodeImport &n) {
  Value x = n.input(0), scale = n.input(1), zero = n.input(2);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  Type element = IntegerType::get(n.b.getContext(), 8, IntegerType::Unsigned);
  if (zero)
    element = n.elementOf(zero);
  else if (int64_t given = n.intAttr("output_dtype", 0))
    element = getElementType(n.b.getContext(), given);
  if (!element)
    return n.error(
        "the attribute output_dtype names no type that is supported");
  // The quotient has the precision of the scale, unless another is asked for.
  Type precision = n.elementOf(scale);
  if (int64_t given = n.intAttr("precision", 0))
    precision = getElementType(n.b.getContext(), given);
  if (!isa_and_present<FloatType>(precision) ||
      precision.getIntOrFloatBitWidth() < 16)
    precision = n.b.getF32Type();
  Value divisor =
      n.cast(spreadParameter(n, scale, shape, "y_scale"), precision);
  Value quotient = n.div(n.cast(x, precision), divisor);
  Type wide = getWide(n, precision);
  if (zero)
    zero = PARTITA_TRY(
        n.cast(spreadParameter(n, zero, shape, "y_zero_point"), wide));
  return n.result(0, quantize(n, n.cast(quotient, wide), zero, element));
}

LogicalResult importDequantizeLinear(NodeImport &n) {
  Value x = n.input(0), scale = n.input(1), zero = n.input(2);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  Type element = n.elementOf(scale);
  if (int64_t given = n.intAttr("output_dtype", 0))
    element = getElementType(n.b.getContext(), given);
  if (!isa_and_present<FloatType>(element))
    return n.error("the attribute output_dtype names no floating-point type");
  Type wide = getWide(n, n.elementOf(scale));
  // Differences of integers are exact.
  if (zero && isa<IntegerType>(n.elementOf(x))) {
    Type exact = n.b.getI32Type();
    x = n.sub(n.cast(x, exact),
              n.cast(spreadParameter(n, zero, shape, "x_zero_point"), exact));
  }
  Value factor = n.cast(spreadParameter(n, scale, shape, "x_scale"), wide);
  Value result = PARTITA_TRY(n.cast(n.mul(n.cast(x, wide), factor), element));
  FailureOr<int64_t> axis =
      n.axis(n.typeOf(scale).getNumElements() == 1 ? 0 : n.intAttr("axis", 1),
             std::max<int64_t>(shape.size(), 1));
  if (succeeded(axis))
    n.source.dequantized[result] = {
        {n.input(0), n.input(2)}, scale, *axis, n.intAttr("block_size", 0)};
  return n.result(0, result);
}

/// A scale or zero point in the shape of a tensor: a scalar or, if `dim` is not
/// negative, by place of that dimension.
Value spreadAlong(NodeImport &n, Value parameter, ArrayRef<int64_t> shape,
                  int64_t dim) {
  if (!parameter)
    return {};
  if (n.typeOf(parameter).getNumElements() == 1)
    return n.broadcastTo(n.reshape(parameter, {}), shape);
  if (n.typeOf(parameter).getRank() == 1 && dim >= 0)
    return n.broadcastDims(parameter, {dim}, shape);
  return n.broadcastTo(parameter, shape);
}

/// x - zero point as i32.
Value subtractZero(NodeImport &n, Value x, Value zero, int64_t dim) {
  Type exact = n.b.getI32Type();
  if (!zero)
    return n.cast(x, exact);
  zero = spreadAlong(n, n.cast(zero, exact), n.shapeOf(x), dim);
  return n.sub(n.cast(x, exact), zero);
}

int64_t rowDim(NodeImport &n, Value x) {
  return std::max<int64_t>(n.typeOf(x).getRank() - 2, 0);
}
int64_t columnDim(NodeImport &n, Value x) { return n.typeOf(x).getRank() - 1; }

/// The largest magnitude of x - zero point, integers of 8 bits each; 0 if they
/// are something else.
int64_t boundOf(NodeImport &n, Value x, Value zero) {
  for (Value value : {x, zero})
    if (value && !n.elementOf(value).isInteger(8))
      return 0;
  DenseElementsAttr known = zero ? n.getConstant(zero) : DenseElementsAttr();
  bool isNone = !zero || (known && known.isSplat() &&
                          known.getSplatValue<APInt>().isZero());
  return isNone && !n.elementOf(x).isUnsignedInteger() ? 128 : 255;
}

/// An operand of a product of integers.
struct Factor {
  Value value;   ///< i32
  int64_t bound; ///< of magnitudes
  int64_t dim;   ///< along which the product sums
};

/// The product of integers as a sum of products of f32 of so few terms each
/// that they are exact, and are computed by the library. `terms`: summed for
/// each place of the dimension.
Value multiplyExactly(NodeImport &n, const Factor &x, const Factor &y,
                      int64_t terms,
                      llvm::function_ref<Value(Value x, Value y)> multiply) {
  constexpr int64_t kExact = int64_t(1) << 24, kMostParts = 64;
  if (!x.value || !y.value)
    return {};
  if (x.bound * y.bound == 0)
    return multiply(x.value, y.value);
  ArrayRef<int64_t> xShape = n.shapeOf(x.value), yShape = n.shapeOf(y.value);
  int64_t places = kExact / (x.bound * y.bound) / std::max<int64_t>(terms, 1);
  int64_t depth =
      x.dim < static_cast<int64_t>(xShape.size()) ? xShape[x.dim] : 0;
  if (places == 0 || depth == 0 || depth > kMostParts * places ||
      y.dim >= static_cast<int64_t>(yShape.size()) || yShape[y.dim] != depth)
    return multiply(x.value, y.value);
  Type single = n.b.getF32Type(), exact = n.b.getI32Type();
  Value left = n.cast(x.value, single), right = n.cast(y.value, single), sum;
  for (int64_t begin = 0; begin < depth; begin += places) {
    int64_t end = std::min(begin + places, depth);
    Value product = n.cast(multiply(n.part(left, x.dim, begin, end),
                                    n.part(right, y.dim, begin, end)),
                           exact, /*saturate=*/false);
    sum = sum ? n.add(sum, product) : product;
  }
  return sum;
}

/// x and y with their zero points, by input number.
Value matMulIntegers(NodeImport &n, int x, int xZero, int y, int yZero) {
  Value a = n.input(x), b = n.input(y);
  auto multiply = [&](Value p, Value q) { return makeMatMul(n, p, q); };
  if (n.shapeOf(a).empty() || n.shapeOf(b).empty())
    return multiply(a, b); // which says that this cannot be
  Value integers =
      PARTITA_TRY(dotIntegers(n, {a, n.input(xZero)}, {b, n.input(yZero)},
                              columnDim(n, a), rowDim(n, b), multiply));
  if (integers)
    return integers;
  Factor left{subtractZero(n, a, n.input(xZero), rowDim(n, a)),
              boundOf(n, a, n.input(xZero)), columnDim(n, a)};
  Factor right{subtractZero(n, b, n.input(yZero), columnDim(n, b)),
               boundOf(n, b, n.input(yZero)), rowDim(n, b)};
  return multiplyExactly(n, left, right, /*terms=*/1, multiply);
}

/// The same for images and weights.
Value convIntegers(NodeImport &n, int x, int xZero, int weights,
                   int weightsZero) {
  Value a = n.input(x), b = n.input(weights);
  Value integers = PARTITA_TRY(
      convolveIntegers(n, {a, n.input(xZero)}, {b, n.input(weightsZero)}));
  if (integers)
    return integers;
  Factor left{subtractZero(n, a, n.input(xZero), -1),
              boundOf(n, a, n.input(xZero)), 1};
  Factor right{subtractZero(n, b, n.input(weightsZero), 0),
               boundOf(n, b, n.input(weightsZero)), 1};
  auto multiply = [&](Value p, Value q) { return makeConv(n, p, q); };
  ArrayRef<int64_t> shape = n.shapeOf(b);
  if (shape.size() < 3 || n.shapeOf(a).size() != shape.size())
    return multiply(left.value, right.value);
  int64_t window = product(shape.drop_front(2));
  // Groups are summed apart: all terms of one must be few enough.
  if (n.intAttr("group", 1) == 1)
    return multiplyExactly(n, left, right, window, multiply);
  int64_t bound = left.bound * right.bound;
  bool fits = bound > 0 && shape[1] * window <= (1 << 24) / bound;
  if (!fits || !left.value || !right.value)
    return multiply(left.value, right.value);
  Type single = n.b.getF32Type();
  return n.cast(
      multiply(n.cast(left.value, single), n.cast(right.value, single)),
      n.b.getI32Type(), /*saturate=*/false);
}

LogicalResult importMatMulInteger(NodeImport &n) {
  return n.result(0, matMulIntegers(n, 0, 2, 1, 3));
}

LogicalResult importConvInteger(NodeImport &n) {
  return n.result(0, convIntegers(n, 0, 2, 1, 3));
}

Value scaleOf(NodeImport &n, Value scale, ArrayRef<int64_t> shape,
              int64_t dim) {
  return spreadAlong(n, n.cast(scale, n.b.getF32Type()), shape, dim);
}

/// An i32 product as a quantised tensor: the scales of both operands and of the
/// result, and the result's zero point, are inputs 1, 4, 6, 7.
LogicalResult requantize(NodeImport &n, Value product, int64_t xDim,
                         int64_t yDim) {
  if (!product)
    return failure();
  ArrayRef<int64_t> shape = n.shapeOf(product);
  Value factor = n.div(n.mul(scaleOf(n, n.input(1), shape, xDim),
                             scaleOf(n, n.input(4), shape, yDim)),
                       scaleOf(n, n.input(6), shape, xDim));
  Value zero = scaleOf(n, n.input(7), shape, xDim);
  Value scaled = n.mul(n.cast(product, n.b.getF32Type()), factor);
  if (!scaled || !zero)
    return failure();
  return n.result(0, quantize(n, scaled, zero, n.elementOf(n.input(7))));
}

LogicalResult importQLinearMatMul(NodeImport &n) {
  Value product = PARTITA_TRY(matMulIntegers(n, 0, 2, 3, 5));
  return requantize(n, product, rowDim(n, product), columnDim(n, product));
}

LogicalResult importQLinearConv(NodeImport &n) {
  Value product = convIntegers(n, 0, 2, 3, 5);
  if (Value bias = n.input(8); bias && product)
    product = n.add(product, n.broadcastDims(bias, {1}, n.shapeOf(product)));
  return requantize(n, product, 1, 1);
}

const OpRow quantizeOps[] = {
    {"ConvInteger", 10, 10, importConvInteger},
    {"DequantizeLinear", 10, 28, importDequantizeLinear},
    {"MatMulInteger", 10, 10, importMatMulInteger},
    {"QLinearConv", 10, 10, importQLinearConv},
    {"QLinearMatMul", 10, 21, importQLinearMatMul},
    {"QuantizeLinear", 10, 28, importQuantizeLinear},
};

} // namespace

ArrayRef<OpRow> getQuantizeOps() { return quantizeOps; }

} // namespace partita::import

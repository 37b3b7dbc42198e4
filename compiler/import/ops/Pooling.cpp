//===- Pooling.cpp - Pooling over windows and over whole images -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "compiler/import/math/Window.h"
#include "dialects/nn/grad/Term.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// A window over all dimensions: N and C have windows of one element.
struct FullWindow {
  Window spatial;
  Shape kernel{1, 1}, strides{1, 1}, dilations{1, 1}, low{0, 0}, high{0, 0};
  RankedTensorType type;
};

FailureOr<FullWindow> getPoolWindow(NodeImport &n) {
  ArrayRef<int64_t> given = n.shapeOf(n.input(0));
  if (given.size() < 3)
    return n.error("X must have rank 3 at least");
  FullWindow full;
  const Window &window = full.spatial = PARTITA_TRY(getWindow(
      n, given.drop_front(2), n.intsAttr("kernel_shape").value_or(Shape())));
  append_range(full.kernel, window.kernel);
  append_range(full.strides, window.strides);
  append_range(full.dilations, window.dilations);
  append_range(full.low, window.low);
  append_range(full.high, window.high);
  Shape shape(given.take_front(2));
  append_range(shape, window.positions);
  full.type = PARTITA_TRY(n.tensor(shape, n.elementOf(n.input(0))));
  return full;
}

Value reduceWindows(NodeImport &n, nn::ReduceKind kind, Value x,
                    const FullWindow &w) {
  return n.make<nn::WindowReduceOp>(w.type, kind, x, w.kernel, w.strides,
                                    w.dilations, w.low, w.high);
}

/// Row-major indices into [N, C, spatial..] with the spatial dimensions taken
/// in column-major order instead: from each index its coordinates, and of those
/// the other index.
Value toColumnMajor(NodeImport &n, Value indices, ArrayRef<int64_t> sizes) {
  int64_t image = product(sizes);
  if (image == 0) // no indices
    return indices;
  Value base = n.mul(n.div(indices, image), image);
  Value rest = n.sub(indices, base);
  Value result = base;
  int64_t rowStride = image, columnStride = 1;
  for (int64_t size : sizes) {
    rowStride /= size;
    Value coordinate = n.div(rest, rowStride);
    rest = n.sub(rest, n.mul(coordinate, rowStride));
    result = n.add(result, n.mul(coordinate, columnStride));
    columnStride *= size;
  }
  return result;
}

LogicalResult importMaxPool(NodeImport &n) {
  Value x = n.input(0);
  FullWindow full = PARTITA_TRY(getPoolWindow(n));
  if (n.wantsOutput(1)) {
    const Window &window = full.spatial;
    for (auto [i, kernel] : enumerate(window.kernel))
      if (window.low[i] >= (kernel - 1) * window.dilations[i] + 1)
        return n.error("a window lies in the border alone, so that its maximum "
                       "has no index");
    auto type = RankedTensorType::get(full.type.getShape(), n.b.getI32Type());
    Value chosen = n.make<nn::WindowArgMaxOp>(type, x, full.kernel,
                                              full.strides, full.dilations,
                                              full.low, full.high, Value());
    Value indices;
    if (auto op = chosen.getDefiningOp<nn::WindowArgMaxOp>()) {
      ImplicitLocOpBuilder b(n.loc, n.b);
      indices = op.buildPlaces(b);
    } else { // no windows
      indices = n.cast(chosen, n.b.getI64Type());
    }
    if (n.intAttr("storage_order", 0) != 0)
      indices = toColumnMajor(n, indices, n.shapeOf(x).drop_front(2));
    PARTITA_TRY(n.result(1, indices));
  }
  return n.result(0, reduceWindows(n, nn::ReduceKind::max, x, full));
}

/// More positions than this have no table of divisors.
constexpr int64_t kMaxDivisors = int64_t(1) << 24;
/// A table of more is not made here, but when the model is loaded.
constexpr int64_t kMostConstants = int64_t(1) << 16;

/// How many elements an average divides by at each position of a dimension:
/// those of the input or, with the border, all but what ceil_mode added. One
/// number where no window touches a border.
FailureOr<Shape> countElements(NodeImport &n, const Window &window, size_t dim,
                               int64_t size, bool withBorder) {
  int64_t low = window.low[dim], high = window.high[dim];
  if (low == 0 && high == 0)
    return Shape{window.kernel[dim]};
  if (window.positions[dim] > kMaxDivisors)
    return n.error("an average with a border over " +
                   Twine(window.positions[dim]) +
                   " positions is not supported; " + Twine(kMaxDivisors) +
                   " are possible");
  int64_t begin = withBorder ? -low : 0;
  int64_t end = withBorder ? size + high - window.excess[dim] : size;
  int64_t dilation = window.dilations[dim];
  Shape counts;
  for (int64_t i = 0; i < window.positions[dim]; ++i) {
    int64_t start = i * window.strides[dim] - low;
    int64_t first =
        std::max<int64_t>(divideCeilSigned(begin - start, dilation), 0);
    int64_t last =
        std::min(divideCeilSigned(end - start, dilation), window.kernel[dim]);
    counts.push_back(std::max<int64_t>(last - first, 0));
  }
  return counts;
}

LogicalResult importAveragePool(NodeImport &n) {
  Value x = n.input(0);
  FullWindow full = PARTITA_TRY(getPoolWindow(n));
  Value sum = reduceWindows(n, nn::ReduceKind::sum, x, full);
  bool withBorder = n.intAttr("count_include_pad", 0) != 0;
  // The count is a product over dimensions: one number, times a table along
  // those where it changes.
  double uniform = 1;
  SmallVector<SmallVector<double>> changing;
  Shape dims, sizes;
  for (auto [i, size] : enumerate(n.shapeOf(x).drop_front(2))) {
    Shape counts =
        PARTITA_TRY(countElements(n, full.spatial, i, size, withBorder));
    if (all_equal(counts)) {
      uniform *= counts.empty() ? 1 : static_cast<double>(counts.front());
      continue;
    }
    changing.emplace_back(counts.begin(), counts.end());
    dims.push_back(static_cast<int64_t>(i) + 2);
    sizes.push_back(static_cast<int64_t>(counts.size()));
  }
  if (changing.empty())
    return n.result(0, n.div(sum, uniform));
  Type element = n.elementOf(x);
  Value table;
  if (product(sizes) <= kMostConstants) {
    SmallVector<double> numbers{uniform};
    for (ArrayRef<double> counts : changing) {
      SmallVector<double> more;
      for (double number : numbers)
        for (double count : counts)
          more.push_back(number * count);
      numbers = std::move(more);
    }
    table = n.reshape(n.numbers(numbers, element), sizes);
  } else {
    for (auto [i, counts] : enumerate(changing)) {
      for (double &count : counts)
        count *= i == 0 ? uniform : 1;
      Value along = n.broadcastDims(n.numbers(counts, element),
                                    {static_cast<int64_t>(i)}, sizes);
      table = table ? n.mul(table, along) : along;
    }
  }
  Value divisor = n.broadcastDims(table, dims, full.type.getShape());
  return n.result(0, n.div(sum, divisor));
}

FailureOr<Shape> getSpatialDims(NodeImport &n) {
  int64_t rank = n.typeOf(n.input(0)).getRank();
  if (rank < 2)
    return n.error("X must have rank 2 at least");
  return Shape(to_vector(seq<int64_t>(2, rank)));
}

LogicalResult importGlobalAveragePool(NodeImport &n) {
  Shape dims = PARTITA_TRY(getSpatialDims(n));
  return n.result(0, n.mean(n.input(0), dims, /*keep=*/true));
}

LogicalResult importGlobalMaxPool(NodeImport &n) {
  Shape dims = PARTITA_TRY(getSpatialDims(n));
  return n.result(0, n.reduce(nn::ReduceKind::max, n.input(0), dims,
                              /*keep=*/true));
}

/// |x| ** p; squares need no power.
Value makePower(NodeImport &n, Value x, double p) {
  if (p == 2)
    return n.mul(x, x);
  Value size = n.unary<nn::AbsOp>(x);
  return p == 1 ? size : n.binary<nn::PowOp>(size, p);
}

/// A norm has a slope of 0 where all is 0, as PyTorch's has.
Value rootOfNorm(NodeImport &n, Value x) {
  Value root = n.unary<nn::SqrtOp>(x);
  if (auto sqrt = root.getDefiningOp<nn::SqrtOp>())
    sqrt->setAttr(nn::grad::kZeroAtZeroAttr, n.b.getUnitAttr());
  return root;
}

Value makeRoot(NodeImport &n, Value x, double p) {
  if (p == 2)
    return rootOfNorm(n, x);
  return p == 1 ? x : n.binary<nn::PowOp>(x, 1 / p);
}

double getOrder(NodeImport &n) {
  const onnx::AttributeProto *p = n.attr("p");
  if (!p)
    return 2;
  return p->has_f() ? p->f() : static_cast<double>(p->i());
}

LogicalResult importLpPool(NodeImport &n) {
  FullWindow full = PARTITA_TRY(getPoolWindow(n));
  double p = getOrder(n);
  Value powers = PARTITA_TRY(makePower(n, n.input(0), p));
  return n.result(
      0, makeRoot(n, reduceWindows(n, nn::ReduceKind::sum, powers, full), p));
}

LogicalResult importGlobalLpPool(NodeImport &n) {
  Shape dims = PARTITA_TRY(getSpatialDims(n));
  double p = getOrder(n);
  Value sum = n.reduce(nn::ReduceKind::sum, makePower(n, n.input(0), p), dims,
                       /*keep=*/true);
  return n.result(0, makeRoot(n, sum, p));
}

LogicalResult importLpNormalization(NodeImport &n) {
  Value x = n.input(0);
  int64_t axis = PARTITA_TRY(n.axisAttr(-1, n.typeOf(x).getRank()));
  double p = getOrder(n);
  Value norm = makeRoot(
      n, n.reduce(nn::ReduceKind::sum, makePower(n, x, p), {axis}, true), p);
  // Of nothing but zeros, zeros.
  Value isZero = n.eq(norm, 0);
  norm = n.select(isZero, 1, norm);
  return n.result(0, n.div(x, n.broadcastTo(norm, n.shapeOf(x))));
}

/// x / (bias + alpha / size * the squares of neighbouring channels) ** beta.
LogicalResult importLRN(NodeImport &n) {
  Value x = n.input(0);
  int64_t rank = n.typeOf(x).getRank(), size = n.intAttr("size", 0);
  if (rank < 2 || size < 1 || size > (1 << 24))
    return n.error("the input must have rank 2 at least, and size be positive");
  Shape window(rank, 1), ones(rank, 1), low(rank, 0), high(rank, 0);
  window[1] = size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  Value squares = PARTITA_TRY(n.mul(x, x));
  Value sum = n.make<nn::WindowReduceOp>(
      n.typeOf(x), nn::ReduceKind::sum, squares, window, ones, ones, low, high);
  double alpha = n.floatAttr("alpha", 1e-4) / static_cast<double>(size);
  Value base = n.add(n.mul(sum, alpha), n.floatAttr("bias", 1));
  return n.result(
      0, n.div(x, n.binary<nn::PowOp>(base, n.floatAttr("beta", 0.75))));
}

const OpRow poolingOps[] = {
    {"AveragePool", 1, 22, importAveragePool},
    {"GlobalAveragePool", 1, 22, importGlobalAveragePool},
    {"GlobalLpPool", 1, 22, importGlobalLpPool},
    {"GlobalMaxPool", 1, 22, importGlobalMaxPool},
    {"LRN", 1, 13, importLRN},
    {"LpNormalization", 1, 22, importLpNormalization},
    {"LpPool", 1, 22, importLpPool},
    {"MaxPool", 1, 22, importMaxPool},
};

} // namespace

ArrayRef<OpRow> getPoolingOps() { return poolingOps; }

} // namespace partita::import

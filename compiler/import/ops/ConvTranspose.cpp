//===- ConvTranspose.cpp - The transpose of a convolution -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"
#include "dialects/nn/fold/EmptyTensors.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

struct Borders {
  Shape low, high, extra; ///< pads, and output_padding
};

/// The pads: given, or what it takes to come to the output's shape.
FailureOr<Borders> getBorders(NodeImport &n, ArrayRef<int64_t> sizes,
                              ArrayRef<int64_t> strides,
                              ArrayRef<int64_t> extents) {
  size_t rank = sizes.size();
  Borders borders;
  borders.extra = n.intsAttr("output_padding").value_or(Shape(rank, 0));
  Shape pads = n.intsAttr("pads").value_or(Shape(2 * rank, 0));
  std::optional<Shape> wanted = n.intsAttr("output_shape");
  if (wanted && wanted->size() == rank + 2)
    wanted->erase(wanted->begin(), wanted->begin() + 2);
  std::string autoPad = PARTITA_TRY(
      n.choice("auto_pad", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}));
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (borders.extra.size() != rank || pads.size() != 2 * rank ||
      (wanted && wanted->size() != rank))
    return n.error("pads, output_padding and output_shape do not fit " +
                   Twine(rank) + " spatial dimensions");
  if (any_of(borders.extra, [](int64_t v) { return v < 0 || v > 65536; }))
    return n.error("output_padding must not be negative");
  for (size_t i = 0; i < rank; ++i) {
    int64_t low = autoPad == "NOTSET" ? pads[i] : 0,
            high = autoPad == "NOTSET" ? pads[rank + i] : 0;
    int64_t full = strides[i] * (sizes[i] - 1) + borders.extra[i] + extents[i];
    if (wanted || isSame) {
      int64_t total = full - (wanted ? (*wanted)[i] : sizes[i] * strides[i]);
      if (!wanted)
        total = std::max<int64_t>(total, 0);
      // An output larger than what is computed has its rest at the end.
      int64_t half = divideFloorSigned(total, 2);
      low = autoPad == "SAME_UPPER" ? half : total - half;
      high = total - low;
    }
    if (full - low - high < 1)
      return n.error("nothing is left of spatial dimension " + Twine(i));
    borders.low.push_back(low);
    borders.high.push_back(high);
  }
  return borders;
}

/// What a node asks for, checked.
struct Transposed {
  Value x, weights, bias;
  int64_t groups;
  Shape strides, dilations, extents;
  Borders borders;
  Shape result;

  size_t rank() const { return strides.size(); }
};

FailureOr<Transposed> readNode(NodeImport &n) {
  Transposed t{n.input(0), n.input(1), n.input(2), n.intAttr("group", 1),
               {},         {},         {},         {},
               {}};
  ArrayRef<int64_t> shape = n.shapeOf(t.x), kernel = n.shapeOf(t.weights);
  if (shape.size() < 3 || kernel.size() != shape.size())
    return n.error("X and W must have the same rank, at least 3");
  size_t rank = shape.size() - 2;
  if (t.groups < 1 || kernel[0] != shape[1] || kernel[0] % t.groups != 0)
    return n.error(Twine(shape[1]) + " channels in " + Twine(t.groups) +
                   " groups do not fit weights with " + Twine(kernel[0]) +
                   " inputs");
  t.strides = n.intsAttr("strides").value_or(Shape(rank, 1));
  t.dilations = n.intsAttr("dilations").value_or(Shape(rank, 1));
  auto isPositive = [](int64_t v) { return v >= 1 && v <= 65536; };
  if (t.strides.size() != rank || t.dilations.size() != rank ||
      !all_of(t.strides, isPositive) || !all_of(t.dilations, isPositive) ||
      !all_of(kernel.drop_front(2), isPositive))
    return n.error("kernels, strides and dilations must be at least 1, one for "
                   "each spatial dimension");
  for (int64_t size : concat<const int64_t>(shape, kernel))
    if (size > 65536)
      return n.error("a size of " + Twine(size) +
                     " is too large; at most 65536 is possible");
  std::optional<Shape> declared = n.intsAttr("kernel_shape");
  if (declared && ArrayRef(*declared) != kernel.drop_front(2))
    return n.error("kernel_shape differs from the shape of W");
  for (size_t i = 0; i < rank; ++i)
    t.extents.push_back((kernel[i + 2] - 1) * t.dilations[i] + 1);
  t.borders =
      PARTITA_TRY(getBorders(n, shape.drop_front(2), t.strides, t.extents));
  t.result = {shape[0], kernel[1] * t.groups};
  for (size_t i = 0; i < rank; ++i)
    t.result.push_back(t.strides[i] * (shape[i + 2] - 1) + t.borders.extra[i] +
                       t.extents[i] - t.borders.low[i] - t.borders.high[i]);
  if (t.bias && n.shapeOf(t.bias) != ArrayRef(t.result).slice(1, 1))
    return n.error("B must have one element an output channel");
  return t;
}

/// A convolution with stride 1 of x, with borders of zeros or cropped.
Value convolve(NodeImport &n, Value x, Value filters, ArrayRef<int64_t> result,
               ArrayRef<int64_t> before, ArrayRef<int64_t> after,
               ArrayRef<int64_t> dilations, int64_t groups) {
  RankedTensorType type = n.tensor(result, n.elementOf(x));
  Shape low(result.size(), 0), high(result.size(), 0), padsLow, padsHigh;
  for (size_t i = 0; i < before.size(); ++i) {
    bool isCut = before[i] < 0 || after[i] < 0;
    padsLow.push_back(isCut ? 0 : before[i]);
    padsHigh.push_back(isCut ? 0 : after[i]);
    low[i + 2] = isCut ? before[i] : 0;
    high[i + 2] = isCut ? after[i] : 0;
  }
  Value seen = padOrCrop(n, x, low, high);
  if (!type || !filters || !seen)
    return {};
  return n.make<nn::ConvOp>(
      type, seen, filters, nn::ImageLayout::channels_first,
      Shape(before.size(), 1), dilations, padsLow, padsHigh, groups);
}

/// Of the input with zeros between its elements, with the kernels turned
/// around.
Value convolveSpread(NodeImport &n, const Transposed &t) {
  ArrayRef<int64_t> kernel = n.shapeOf(t.weights);
  Shape before, after, spatial;
  for (size_t i = 0; i < t.rank(); ++i) {
    before.push_back(t.extents[i] - 1 - t.borders.low[i]);
    after.push_back(t.extents[i] - 1 - t.borders.high[i] + t.borders.extra[i]);
    spatial.push_back(static_cast<int64_t>(i) + 2);
  }
  // [C, O / g, k..] -> [O, C / g, k..] within each group.
  Shape grouped{t.groups, kernel[0] / t.groups, kernel[1]},
      turned{t.groups * kernel[1], kernel[0] / t.groups}, permutation{0, 2, 1};
  append_range(grouped, kernel.drop_front(2));
  append_range(turned, kernel.drop_front(2));
  for (size_t i = 0; i < t.rank(); ++i)
    permutation.push_back(static_cast<int64_t>(i) + 3);
  Value filters = n.reverse(
      n.reshape(n.transpose(n.reshape(t.weights, grouped), permutation),
                turned),
      spatial);
  Value y = convolve(n, spread(n, t.x, 2, t.strides), filters, t.result, before,
                     after, t.dilations, t.groups);
  return y && t.bias ? n.add(y, n.broadcastDims(t.bias, {1}, t.result)) : y;
}

/// Of the input as it is, so that nothing is multiplied by the zeros that
/// strides put between its elements: what stands at s * q + r of the result
/// depends on x[q - j] and weights[s * j + r] for all j. So each of the s
/// places r is some channels of one convolution with ceil(k / s) weights, and
/// these channels then move into space.
Value convolvePhases(NodeImport &n, const Transposed &t) {
  ArrayRef<int64_t> shape = n.shapeOf(t.x), kernel = n.shapeOf(t.weights);
  size_t rank = t.rank();
  int64_t inputs = kernel[0], outputs = kernel[1], phases = product(t.strides);

  // [C, O, k..] -> [C, O, j, s, j, s, ..] -> [s, s, .., O, C, j, j, ..]
  Shape none(rank + 2, 0), fill(rank + 2, 0), split{inputs, outputs}, order,
      taps, filterShape{phases * outputs, inputs}, spatial;
  for (size_t i = 0; i < rank; ++i) {
    taps.push_back(divideCeilSigned(kernel[i + 2], t.strides[i]));
    fill[i + 2] = taps[i] * t.strides[i] - kernel[i + 2];
    split.append({taps[i], t.strides[i]});
    order.push_back(static_cast<int64_t>(2 * i) + 3);
    spatial.push_back(static_cast<int64_t>(i) + 2);
  }
  order.append({1, 0});
  for (size_t i = 0; i < rank; ++i)
    order.push_back(static_cast<int64_t>(2 * i) + 2);
  append_range(filterShape, taps);
  Value filters = n.reverse(
      n.reshape(
          n.transpose(n.reshape(padOrCrop(n, t.weights, none, fill), split),
                      order),
          filterShape),
      spatial);

  // The blocks of s places that the result touches, from the first on.
  Shape before, after, blocks{shape[0], phases * outputs}, cropLow(rank + 2, 0),
      cropHigh(rank + 2, 0), moved{shape[0], outputs};
  for (size_t i = 0; i < rank; ++i) {
    int64_t s = t.strides[i], low = t.borders.low[i], size = t.result[i + 2];
    int64_t first = divideFloorSigned(low, s),
            count = divideCeilSigned(low + size, s) - first;
    before.push_back(taps[i] - 1 - first);
    after.push_back(count - shape[i + 2] + first);
    blocks.push_back(count);
    moved.push_back(count * s);
    cropLow[i + 2] = first * s - low;
    cropHigh[i + 2] = size - count * s - cropLow[i + 2];
  }
  Value y = PARTITA_TRY(
      convolve(n, t.x, filters, blocks, before, after, Shape(rank, 1), 1));
  if (t.bias) {
    Shape channels;
    for (int64_t i = 0; i < phases * outputs; ++i)
      channels.push_back(i % outputs);
    Value repeated = n.gather(t.bias, n.indices(channels), 0);
    y = n.add(y, n.broadcastDims(repeated, {1}, blocks));
  }
  // [N, s, s, .., O, q, q, ..] -> [N, O, q, s, q, s, ..]
  Shape parts{shape[0]}, places{0, static_cast<int64_t>(rank) + 1};
  append_range(parts, t.strides);
  parts.push_back(outputs);
  append_range(parts, ArrayRef(blocks).drop_front(2));
  for (size_t i = 0; i < rank; ++i)
    places.append(
        {static_cast<int64_t>(rank + i) + 2, static_cast<int64_t>(i) + 1});
  return padOrCrop(n,
                   n.reshape(n.transpose(n.reshape(y, parts), places), moved),
                   cropLow, cropHigh);
}

/// Channels of their own have nothing to win, since oneDNN wants one output of
/// each; nor have strides far larger than the kernel, whose phases have no
/// weights.
bool suitsPhases(NodeImport &n, const Transposed &t) {
  constexpr double kMostFilled = 4;
  double weights = 1, filled = 1;
  for (auto [size, stride] :
       zip_equal(n.shapeOf(t.weights).drop_front(2), t.strides)) {
    weights *= static_cast<double>(size);
    filled *= static_cast<double>(divideCeilSigned(size, stride) * stride);
  }
  auto isOne = [](int64_t value) { return value == 1; };
  return t.groups == 1 && all_of(t.dilations, isOne) &&
         !all_of(t.strides, isOne) && filled <= kMostFilled * weights;
}

LogicalResult importConvTranspose(NodeImport &n) {
  Transposed t = PARTITA_TRY(readNode(n));
  // A sum of nothing.
  if (nn::hasNoElements(t.x.getType()) ||
      nn::hasNoElements(t.weights.getType())) {
    Value none = n.splat(0, t.result, n.elementOf(t.x));
    return n.result(0, t.bias ? n.broadcastDims(t.bias, {1}, t.result) : none);
  }
  return n.result(0, suitsPhases(n, t) ? convolvePhases(n, t)
                                       : convolveSpread(n, t));
}

const OpRow convTransposeOps[] = {
    {"ConvTranspose", 1, 22, importConvTranspose},
};

} // namespace

ArrayRef<OpRow> getConvTransposeOps() { return convTransposeOps; }

} // namespace partita::import

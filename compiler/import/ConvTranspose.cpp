//===- ConvTranspose.cpp - The transpose of a convolution -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/IndexMath.h"
#include "compiler/import/OpTable.h"

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
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!isSame && autoPad != "NOTSET" && autoPad != "VALID")
    return n.error("the attribute auto_pad is '" + autoPad + "'");
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

/// A convolution with stride 1 of the input, with zeros between its elements,
/// and the kernels turned around.
LogicalResult importConvTranspose(NodeImport &n) {
  Value x = n.input(0), weights = n.input(1), bias = n.input(2);
  ArrayRef<int64_t> shape = n.shapeOf(x), kernel = n.shapeOf(weights);
  if (shape.size() < 3 || kernel.size() != shape.size())
    return n.error("X and W must have the same rank, at least 3");
  size_t rank = shape.size() - 2;
  int64_t groups = n.intAttr("group", 1);
  if (groups < 1 || kernel[0] != shape[1] || kernel[0] % groups != 0)
    return n.error(Twine(shape[1]) + " channels in " + Twine(groups) +
                   " groups do not fit weights with " + Twine(kernel[0]) +
                   " inputs");
  Shape strides = n.intsAttr("strides").value_or(Shape(rank, 1)),
        dilations = n.intsAttr("dilations").value_or(Shape(rank, 1)), extents;
  auto isPositive = [](int64_t v) { return v >= 1 && v <= 65536; };
  if (strides.size() != rank || dilations.size() != rank ||
      !all_of(strides, isPositive) || !all_of(dilations, isPositive) ||
      !all_of(kernel, isPositive) || !all_of(shape, isPositive))
    return n.error("sizes, strides and dilations must be at least 1, one for "
                   "each spatial dimension");
  std::optional<Shape> declared = n.intsAttr("kernel_shape");
  if (declared && ArrayRef(*declared) != kernel.drop_front(2))
    return n.error("kernel_shape differs from the shape of W");
  for (size_t i = 0; i < rank; ++i)
    extents.push_back((kernel[i + 2] - 1) * dilations[i] + 1);
  FailureOr<Borders> borders =
      getBorders(n, shape.drop_front(2), strides, extents);
  if (failed(borders))
    return failure();

  Shape low(rank + 2, 0), high(rank + 2, 0),
      result{shape[0], kernel[1] * groups}, padsLow, padsHigh, spatial;
  for (size_t i = 0; i < rank; ++i) {
    int64_t before = extents[i] - 1 - borders->low[i],
            after = extents[i] - 1 - borders->high[i] + borders->extra[i];
    padsLow.push_back(std::max<int64_t>(before, 0));
    padsHigh.push_back(std::max<int64_t>(after, 0));
    low[i + 2] = std::min<int64_t>(before, 0);
    high[i + 2] = std::min<int64_t>(after, 0);
    result.push_back(strides[i] * (shape[i + 2] - 1) + borders->extra[i] +
                     extents[i] - borders->low[i] - borders->high[i]);
    spatial.push_back(static_cast<int64_t>(i) + 2);
  }
  RankedTensorType type = n.tensor(result, n.elementOf(x));
  if (!type)
    return failure();
  // [C, O / g, k..] -> [O, C / g, k..] within each group.
  Shape grouped{groups, kernel[0] / groups, kernel[1]},
      turned{groups * kernel[1], kernel[0] / groups}, permutation{0, 2, 1};
  append_range(grouped, kernel.drop_front(2));
  append_range(turned, kernel.drop_front(2));
  for (size_t i = 0; i < rank; ++i)
    permutation.push_back(static_cast<int64_t>(i) + 3);
  Value filters = n.reverse(
      n.reshape(n.transpose(n.reshape(weights, grouped), permutation), turned),
      spatial);
  Value spaced = padOrCrop(n, spread(n, x, 2, strides), low, high);
  if (!filters || !spaced)
    return failure();
  Value y =
      n.make<nn::ConvOp>(type, spaced, filters, nn::ImageLayout::channels_first,
                         Shape(rank, 1), dilations, padsLow, padsHigh, groups);
  if (bias) {
    if (n.shapeOf(bias) != ArrayRef(result).slice(1, 1))
      return n.error("B must have one element an output channel");
    y = n.binary<nn::AddOp>(y, n.broadcastDims(bias, {1}, result));
  }
  return n.result(0, y);
}

const OpRow rows[] = {
    {"ConvTranspose", 1, 22, importConvTranspose},
};

} // namespace

ArrayRef<OpRow> getConvTransposeOps() { return rows; }

} // namespace partita::import

//===- Resize.cpp - Resize and Upsample -----------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/ResizeTaps.h"

#include <cmath>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

FailureOr<ResizeMode> getMode(NodeImport &n, bool isUpsample) {
  ResizeMode mode;
  const bool isOld = isUpsample || n.opset < 11;
  // The word of version 1.
  if (isOld && n.stringAttr("mode", "") == "bilinear")
    mode.mode = "linear";
  else
    mode.mode = PARTITA_TRY(n.choice("mode", {"nearest", "linear", "cubic"}));
  if (isOld) {
    mode.coordinates = "asymmetric";
    mode.nearest = "floor";
    return mode;
  }
  mode.coordinates =
      PARTITA_TRY(n.choice("coordinate_transformation_mode",
                           {"half_pixel", "half_pixel_symmetric",
                            "pytorch_half_pixel", "align_corners", "asymmetric",
                            "tf_crop_and_resize", "tf_half_pixel_for_nn"}));
  mode.nearest = PARTITA_TRY(
      n.choice("nearest_mode",
               {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  mode.cubicCoefficient = n.floatAttr("cubic_coeff_a", -0.75);
  mode.excludeOutside = n.intAttr("exclude_outside", 0) != 0;
  mode.antialias = n.intAttr("antialias", 0) != 0;
  return mode;
}

/// The inputs of Resize, whose places changed: none for "".
struct ResizeInputs {
  std::optional<SmallVector<double>> roi, scales;
  std::optional<Shape> sizes;
};

FailureOr<ResizeInputs> getInputs(NodeImport &n, bool isUpsample) {
  ResizeInputs inputs;
  if (isUpsample && n.opset < 9) {
    const onnx::AttributeProto *scales = n.attr("scales");
    if (!scales)
      return n.error("the attribute scales is missing");
    inputs.scales.emplace(scales->floats().begin(), scales->floats().end());
    return inputs;
  }
  bool isOld = isUpsample || n.opset < 11;
  auto read = [&](unsigned i, StringRef what,
                  std::optional<SmallVector<double>> &target) -> LogicalResult {
    // An empty tensor is how older exporters omit an input.
    if (!n.input(i) || n.typeOf(n.input(i)).getNumElements() == 0)
      return success();
    target = PARTITA_TRY(n.constantFloats(i, what));
    return success();
  };
  PARTITA_TRY(read(isOld ? 1 : 2, "scales", inputs.scales));
  if (isOld)
    return inputs;
  if (n.stringAttr("coordinate_transformation_mode", "") ==
      "tf_crop_and_resize")
    PARTITA_TRY(read(1, "roi", inputs.roi));
  if (n.input(3))
    inputs.sizes = PARTITA_TRY(n.constantInts(3, "sizes"));
  return inputs;
}

/// The axes that are resized, and how; by dimension.
FailureOr<SmallVector<std::pair<int64_t, ResizeAxis>>>
getAxes(NodeImport &n, const ResizeInputs &inputs) {
  ArrayRef<int64_t> shape = n.shapeOf(n.input(0));
  int64_t rank = shape.size();
  Shape dims = n.intsAttr("axes").value_or(to_vector(seq<int64_t>(0, rank)));
  PARTITA_TRY(n.axes(dims, rank));
  size_t count = dims.size();
  if (inputs.scales.has_value() == inputs.sizes.has_value())
    return n.error("one of scales and sizes must be given, and not both");
  if ((inputs.scales && inputs.scales->size() != count) ||
      (inputs.sizes && inputs.sizes->size() != count) ||
      (inputs.roi && inputs.roi->size() != 2 * count))
    return n.error("scales, sizes or roi do not fit " + Twine(count) + " axes");

  SmallVector<std::pair<int64_t, ResizeAxis>> axes;
  for (auto [i, given] : enumerate(dims)) {
    int64_t dim = given < 0 ? given + rank : given;
    ResizeAxis axis;
    axis.size = shape[dim];
    if (inputs.sizes) {
      axis.newSize = (*inputs.sizes)[i];
      axis.scale =
          static_cast<double>(axis.newSize) / static_cast<double>(axis.size);
    } else {
      axis.scale = (*inputs.scales)[i];
      double size = std::floor(axis.scale * static_cast<double>(axis.size));
      axis.newSize = std::abs(size) < 1e15 ? static_cast<int64_t>(size) : -1;
    }
    if (inputs.roi) {
      axis.roiStart = (*inputs.roi)[i];
      axis.roiEnd = (*inputs.roi)[count + i];
    }
    axes.emplace_back(dim, axis);
  }

  std::string policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  if (inputs.sizes && policy != "stretch") {
    if (policy != "not_larger" && policy != "not_smaller")
      return n.error("the attribute keep_aspect_ratio_policy is '" + policy +
                     "'");
    double scale = axes.empty() ? 1 : axes.front().second.scale;
    for (auto &[dim, axis] : axes)
      scale = policy == "not_larger" ? std::min(scale, axis.scale)
                                     : std::max(scale, axis.scale);
    for (auto &[dim, axis] : axes) {
      axis.scale = scale;
      double size = std::floor(scale * static_cast<double>(axis.size) + 0.5);
      axis.newSize = std::abs(size) < 1e15 ? static_cast<int64_t>(size) : -1;
    }
  }
  for (auto &[dim, axis] : axes)
    if (axis.newSize < 0 || (axis.size == 0 && axis.newSize != 0) ||
        (axis.newSize > 0 && !(axis.scale > 0)) || axis.newSize > (1 << 24))
      return n.error("axis " + Twine(dim) + " of size " + Twine(axis.size) +
                     " cannot be resized to " + Twine(axis.newSize));
  return axes;
}

/// sum over k of weight_k * x[index_k], along one dimension.
Value resizeAxis(NodeImport &n, Value x, int64_t dim, const ResizeAxis &axis,
                 const ResizeMode &mode, double extrapolation) {
  if (axis.newSize == 0)
    return n.part(x, dim, 0, 0);
  ResizeTaps taps = computeResizeTaps(axis, mode);
  Value sum;
  Shape shape;
  for (int64_t k = 0; k < taps.numTaps; ++k) {
    Shape indices;
    SmallVector<double> weights;
    for (int64_t i = 0; i < axis.newSize; ++i) {
      indices.push_back(taps.indices[i * taps.numTaps + k]);
      weights.push_back(taps.weights[i * taps.numTaps + k]);
    }
    if (all_of(weights, [](double w) { return w == 0; }))
      continue;
    Value term = PARTITA_TRY(n.gather(x, n.indices(indices), dim));
    shape.assign(n.shapeOf(term).begin(), n.shapeOf(term).end());
    if (any_of(weights, [](double w) { return w != 1; }))
      term = n.mul(term, n.broadcastDims(n.numbers(weights, n.elementOf(x)),
                                         {dim}, shape));
    sum = sum ? n.add(sum, term) : term;
  }
  if (sum && is_contained(taps.outside, true)) {
    SmallVector<bool> outside(taps.outside.begin(), taps.outside.end());
    auto type = RankedTensorType::get({axis.newSize}, n.b.getI1Type());
    Value mask = n.constant(DenseElementsAttr::get(type, outside));
    sum = n.select(n.broadcastDims(mask, {dim}, shape), extrapolation, sum);
  }
  return sum;
}

template <bool isUpsample> LogicalResult importAs(NodeImport &n) {
  ResizeMode mode = PARTITA_TRY(getMode(n, isUpsample));
  ResizeInputs inputs = PARTITA_TRY(getInputs(n, isUpsample));
  auto axes = PARTITA_TRY(getAxes(n, inputs));
  Value x = n.input(0);
  Type element = n.elementOf(x);
  // Weighted sums of integers are taken in f32; of narrow floats too, for an
  // axis after another would round twice.
  if (mode.mode != "nearest" && element.getIntOrFloatBitWidth() < 32)
    x = n.cast(x, n.b.getF32Type());
  else if (mode.mode != "nearest" && isa<IntegerType>(element))
    x = n.cast(x, n.b.getF64Type());
  double extrapolation = n.floatAttr("extrapolation_value", 0);
  bool isCrop = mode.coordinates == "tf_crop_and_resize";
  for (const auto &[dim, axis] : axes) {
    bool isWhole = !isCrop || (axis.roiStart == 0 && axis.roiEnd == 1);
    if (axis.newSize == axis.size && std::abs(axis.scale - 1) < 1e-9 && isWhole)
      continue;
    x = PARTITA_TRY(resizeAxis(n, x, dim, axis, mode, extrapolation));
  }
  return n.result(0, n.cast(x, element));
}

const OpRow resizeOps[] = {
    {"Resize", 10, 19, importAs<false>},
    {"Upsample", 7, 9, importAs<true>},
};

} // namespace

ArrayRef<OpRow> getResizeOps() { return resizeOps; }

} // namespace partita::import

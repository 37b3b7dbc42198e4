//===- ResizeTaps.cpp - Where the elements of a resized axis come from ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/ResizeTaps.h"

#include <algorithm>
#include <cmath>

namespace partita::import {

/// The old coordinate of new element i.
static double getCoordinate(const ResizeAxis &axis, const std::string &mode,
                            int64_t i) {
  double size = static_cast<double>(axis.size), x = static_cast<double>(i);
  // Not rounded to a number of elements: modes disagree on which is right.
  double newSize = axis.scale * size;
  if (mode == "align_corners")
    return newSize == 1 ? 0 : x * (size - 1) / (newSize - 1);
  if (mode == "asymmetric")
    return x / axis.scale;
  if (mode == "tf_crop_and_resize") {
    double extent = (axis.roiEnd - axis.roiStart) * (size - 1);
    return axis.roiStart * (size - 1) +
           (newSize == 1 ? extent / 2 : x * extent / (newSize - 1));
  }
  if (mode == "tf_half_pixel_for_nn")
    return (x + 0.5) / axis.scale;
  if (mode == "pytorch_half_pixel" && newSize == 1)
    return 0;
  double offset = 0;
  if (mode == "half_pixel_symmetric")
    offset = size / 2 * (1 - static_cast<double>(axis.newSize) / newSize);
  return offset + (x + 0.5) / axis.scale - 0.5;
}

static double cubic(double distance, double a) {
  double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2)
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

static double linear(double distance) {
  return std::max(0.0, 1 - std::abs(distance));
}

static int64_t roundCoordinate(double x, const std::string &mode) {
  double rounded = mode == "floor"               ? std::floor(x)
                   : mode == "ceil"              ? std::ceil(x)
                   : mode == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                 : std::ceil(x - 0.5);
  return static_cast<int64_t>(rounded);
}

ResizeTaps computeResizeTaps(const ResizeAxis &axis, const ResizeMode &mode) {
  ResizeTaps taps;
  bool isNearest = mode.mode == "nearest", isCubic = mode.mode == "cubic";
  // With antialiasing the kernel is as wide as what one new element covers.
  double shrink = mode.antialias ? std::min(axis.scale, 1.0) : 1.0;
  double support = (isCubic ? 2 : 1) / shrink;
  int64_t reach = static_cast<int64_t>(-std::floor(-support)) - 1;
  taps.numTaps = isNearest ? 1 : 2 * reach + 2;

  for (int64_t i = 0; i < axis.newSize; ++i) {
    double x = getCoordinate(axis, mode.coordinates, i);
    taps.outside.push_back(mode.coordinates == "tf_crop_and_resize" &&
                           (x < 0 || x > static_cast<double>(axis.size - 1)));
    // Far outside all elements are the border's; the bound keeps numbers small.
    double limit = 2 * static_cast<double>(axis.size) + 16;
    x = std::isnan(x) ? 0 : std::clamp(x, -limit, limit);
    if (isNearest) {
      taps.indices.push_back(roundCoordinate(x, mode.nearest));
      taps.weights.push_back(1);
      continue;
    }
    int64_t base = static_cast<int64_t>(std::floor(x)) - reach;
    double sum = 0;
    size_t first = taps.weights.size();
    for (int64_t k = 0; k < taps.numTaps; ++k) {
      double distance = (static_cast<double>(base + k) - x) * shrink;
      double weight =
          isCubic ? cubic(distance, mode.cubicCoefficient) : linear(distance);
      bool isOutside = base + k < 0 || base + k >= axis.size;
      if (mode.excludeOutside && isOutside)
        weight = 0;
      taps.indices.push_back(base + k);
      taps.weights.push_back(weight);
      sum += weight;
    }
    if ((mode.excludeOutside || mode.antialias) && sum != 0)
      for (size_t k = first; k < taps.weights.size(); ++k)
        taps.weights[k] /= sum;
  }
  for (int64_t &index : taps.indices)
    index = std::clamp<int64_t>(index, 0, axis.size - 1);
  return taps;
}

} // namespace partita::import

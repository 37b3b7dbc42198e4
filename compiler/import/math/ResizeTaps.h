//===- ResizeTaps.h - Where a resized axis comes from -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Resizing is separable: along one axis each new element is a weighted sum of
// old ones. This computes the indices and weights of the old ones, without
// MLIR.
//
//   size 2 -> 4, linear, half_pixel: coordinates -0.25, 0.25, 0.75, 1.25
//   indices  [0 0] [0 1] [0 1] [1 1]
//   weights  [.25 .75] [.75 .25] [.25 .75] [.75 .25]
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MATH_RESIZETAPS_H
#define PARTITA_COMPILER_IMPORT_MATH_RESIZETAPS_H

#include <cstdint>
#include <string>
#include <vector>

namespace partita::import {

/// The attributes of an ONNX Resize that say how it interpolates.
struct ResizeMode {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubicCoefficient = -0.75;
  bool excludeOutside = false;
  bool antialias = false;
};

/// One axis: its sizes, their ratio as given, and the region of interest.
struct ResizeAxis {
  int64_t size = 1;
  int64_t newSize = 1;
  double scale = 1;
  double roiStart = 0, roiEnd = 1;
};

/// For each new element, `numTaps` indices of old ones and their weights.
struct ResizeTaps {
  int64_t numTaps = 1;
  std::vector<int64_t> indices; ///< [newSize][numTaps]
  std::vector<double> weights;  ///< [newSize][numTaps]
  std::vector<bool> outside;    ///< takes the extrapolation value
};

/// Requires `size` >= 1 and, if `newSize` > 0, `scale` > 0. The names in `mode`
/// must have been checked.
ResizeTaps computeResizeTaps(const ResizeAxis &axis, const ResizeMode &mode);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MATH_RESIZETAPS_H

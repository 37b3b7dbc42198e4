//===- ResizeTapsTest.cpp - Where resized elements come from --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/ResizeTaps.h"

#include <gtest/gtest.h>

using namespace partita::import;

namespace {

TEST(ResizeTaps, LinearHalfPixel) {
  ResizeTaps taps = computeResizeTaps({2, 4, 2.0}, {.mode = "linear"});
  EXPECT_EQ(taps.numTaps, 2);
  EXPECT_EQ(taps.indices, (std::vector<int64_t>{0, 0, 0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(taps.weights,
            (std::vector<double>{.25, .75, .75, .25, .25, .75, .75, .25}));
}

TEST(ResizeTaps, NearestModes) {
  auto indices = [](const char *nearest) {
    return computeResizeTaps({4, 8, 2.0},
                             {.coordinates = "asymmetric", .nearest = nearest})
        .indices;
  };
  using Indices = std::vector<int64_t>;
  EXPECT_EQ(indices("floor"), (Indices{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(indices("ceil"), (Indices{0, 1, 1, 2, 2, 3, 3, 3}));
  EXPECT_EQ(indices("round_prefer_floor"), (Indices{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(indices("round_prefer_ceil"), (Indices{0, 1, 1, 2, 2, 3, 3, 3}));
}

TEST(ResizeTaps, WeightsAddUpToOne) {
  for (const char *mode : {"linear", "cubic"})
    for (bool antialias : {false, true})
      for (bool exclude : {false, true}) {
        ResizeMode how{.mode = mode};
        how.antialias = antialias;
        how.excludeOutside = exclude;
        ResizeTaps taps = computeResizeTaps({10, 6, 0.6}, how);
        ASSERT_EQ(taps.weights.size(), static_cast<size_t>(6 * taps.numTaps));
        for (int i = 0; i < 6; ++i) {
          double sum = 0;
          for (int64_t k = 0; k < taps.numTaps; ++k) {
            sum += taps.weights[i * taps.numTaps + k];
            EXPECT_GE(taps.indices[i * taps.numTaps + k], 0);
            EXPECT_LT(taps.indices[i * taps.numTaps + k], 10);
          }
          EXPECT_NEAR(sum, 1, 1e-12);
        }
      }
}

// ONNX: x_original = length_resized > 1 ? (x_resized + 0.5) / scale - 0.5 : 0.
TEST(ResizeTaps, PytorchHalfPixelToOneElement) {
  ResizeMode mode{.mode = "linear", .coordinates = "pytorch_half_pixel"};
  mode.antialias = true;
  ResizeTaps taps = computeResizeTaps({2, 1, 0.5}, mode);
  double first = 0, second = 0;
  for (int64_t k = 0; k < taps.numTaps; ++k)
    (taps.indices[k] == 0 ? first : second) += taps.weights[k];
  // The kernel reaches two elements from 0: weights 1/2, 1, 1/2; the border's
  // element stands for the one before it.
  EXPECT_DOUBLE_EQ(first, 0.75);
  EXPECT_DOUBLE_EQ(second, 0.25);
}

TEST(ResizeTaps, CropMarksWhatIsOutside) {
  ResizeTaps taps = computeResizeTaps(
      {4, 3, 0.75, 0.0, 2.0},
      {.mode = "linear", .coordinates = "tf_crop_and_resize"});
  EXPECT_EQ(taps.outside, (std::vector<bool>{false, false, true}));
}

} // namespace

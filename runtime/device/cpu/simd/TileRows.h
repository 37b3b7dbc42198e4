//===- TileRows.h - Transforms of Winograd's method -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution with windows of 3x3 is computed in tiles. A tile of m x m
// pixels of the result, m = 2 or 4, depends on n x n pixels of the image, n = m
// + 2:
//   result = A^T [(G g G^T) * (B^T d B)] A
// Here g is the filter, d are the pixels, and * is the product element by
// element. Summed over the channels of the image, * is a matrix product for
// each of the n * n elements (A. Lavin, S. Gray: Fast Algorithms for
// Convolutional Neural Networks, 2015). The matrices follow from n - 1 points
// at which polynomials are evaluated. Small tiles use the points 0, 1 and -1.
// Large tiles use 0, p, -p, q and -q; the usual points 1 and 2 would lose more
// bits.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_TILEROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_TILEROWS_H

#include <cstdint>

namespace partita::runtime {

/// The points p and q.
constexpr double kNearPoint = .625, kFarPoint = 1.5;

/// B^T d B of one tile, for each channel.
struct TileInput {
  const float *const *pixels = nullptr; ///< n * n, each of `channels` floats
  float *to = nullptr;                  ///< address of the first element
  int64_t step = 0;                     ///< floats from element to element
  int64_t channels = 0;
};

/// A^T e A of one tile, for each channel, plus a bias, clamped to [least,
/// most].
struct TileOutput {
  const float *from = nullptr; ///< address of the first element
  int64_t step = 0;            ///< floats from element to element
  int64_t channels = 0;
  const float *bias = nullptr; ///< or null
  float least = 0, most = 0;
  float *const *pixels = nullptr; ///< m * m; null: outside of the result
};

using TileInputFunction = void (*)(const TileInput &);
using TileOutputFunction = void (*)(const TileOutput &);

/// The functions for tiles of 2x2 and of 4x4.
struct TileFunctions {
  TileInputFunction input2, input4;
  TileOutputFunction output2, output4;
};

TileFunctions tileFunctionsBaseline();
TileFunctions tileFunctionsV3();
TileFunctions tileFunctionsV4();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_TILEROWS_H

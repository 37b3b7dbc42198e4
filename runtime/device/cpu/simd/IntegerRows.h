//===- IntegerRows.h - Sums of products of small integers -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_INTEGERROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_INTEGERROWS_H

#include <cstdint>

namespace partita::runtime {

/// The rows of a tile of the left side, and the columns of a tile of the right
/// side.
constexpr int kIntegerRows = 6, kIntegerColumns = 16;

/// sums[i][j] = the sum of products of row i of the left side and column j of
/// the right side. The factors have at most 9 bits. Elements of the right side
/// are stored in pairs: [depth / 2][kIntegerColumns][2].
struct IntegerTile {
  const int16_t *left = nullptr, *right = nullptr;
  int64_t depth = 0; ///< even; elements of a row, and its stride
  int32_t sums[kIntegerRows][kIntegerColumns];
};

/// to[c] = sum over taps of pixels[tap][c] * weights[tap * channels + c].
struct IntegerPixel {
  const uint8_t *const *pixels = nullptr; ///< by tap; null: outside
  const int16_t *weights = nullptr;
  int64_t taps = 0, channels = 0;
  bool has_sign = false; ///< whether pixels are signed
  int32_t *to = nullptr;
};

struct IntegerFunctions {
  void (*tile)(IntegerTile &);
  /// Widens signed or unsigned bytes to 16 bits.
  void (*widen)(const uint8_t *from, int64_t count, bool has_sign, int16_t *to);
  void (*pixel)(const IntegerPixel &);
};

IntegerFunctions integerFunctionsBaseline();
IntegerFunctions integerFunctionsV3();
IntegerFunctions integerFunctionsV4();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_INTEGERROWS_H

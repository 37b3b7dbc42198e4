//===- IntegerRows.h - Sums of products of small integers -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_INTEGERROWS_H
#define PARTITA_RUNTIME_DEVICE_CPU_INTEGERROWS_H

#include <cstdint>

namespace partita::runtime {

/// Rows are as long as a multiple of so many elements, filled up with 0.
constexpr int64_t kIntegerRow = 32;
/// Rows of a tile, on both sides.
constexpr int kIntegerTile = 4;

/// sums[i][j] = the products of row i of the left side and row j of the right
/// one, all kIntegerTile of them; the numbers have 9 bits.
struct IntegerTile {
  const int16_t *left = nullptr, *right = nullptr;
  int64_t depth = 0; ///< elements of a row, and from row to row
  int32_t sums[kIntegerTile][kIntegerTile];
};

/// to[c] = sum over taps of pixels[tap][c] * weights[tap * channels + c].
struct IntegerPixel {
  const uint8_t *const *pixels = nullptr; ///< by tap; null: outside
  const int16_t *weights = nullptr;
  int64_t taps = 0, channels = 0;
  bool has_sign = false; ///< of the pixels
  int32_t *to = nullptr;
};

struct IntegerFunctions {
  void (*tile)(IntegerTile &);
  void (*pixel)(const IntegerPixel &);
};

IntegerFunctions integerFunctionsBaseline();
IntegerFunctions integerFunctionsV3();
IntegerFunctions integerFunctionsV4();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_INTEGERROWS_H

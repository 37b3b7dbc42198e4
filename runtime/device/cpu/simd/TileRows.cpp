//===- TileRows.cpp - Transforms of Winograd's method, vectorised ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level; see Lanes.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/TileRows.h"

#include "runtime/device/cpu/simd/Lanes.h"

namespace partita::runtime {
namespace {

/// Rows of B^T and of A^T, applied to n vectors that lie `step` apart.
struct Tile2 {
  static constexpr int kSide = 2;
  static inline void input(const Floats *d, int step, Floats *t) {
    t[0] = d[0] - d[2 * step];
    t[1] = d[step] + d[2 * step];
    t[2] = d[2 * step] - d[step];
    t[3] = d[step] - d[3 * step];
  }
  static inline void output(const Floats *e, int step, Floats *t) {
    t[0] = e[0] + e[step] + e[2 * step];
    t[1] = e[step] - e[2 * step] - e[3 * step];
  }
};

struct Tile4 {
  static constexpr int kSide = 4;
  static constexpr float p = kNearPoint, q = kFarPoint;

  static inline void input(const Floats *d, int step, Floats *t) {
    const Floats d1 = d[step], d2 = d[2 * step], d3 = d[3 * step],
                 d4 = d[4 * step];
    const Floats even1 = d4 - q * q * d2, odd1 = p * (d3 - q * q * d1),
                 even2 = d4 - p * p * d2, odd2 = q * (d3 - p * p * d1);
    t[0] = p * p * q * q * d[0] - (p * p + q * q) * d2 + d4;
    t[1] = even1 + odd1;
    t[2] = even1 - odd1;
    t[3] = even2 + odd2;
    t[4] = even2 - odd2;
    t[5] = p * p * q * q * d1 - (p * p + q * q) * d3 + d[5 * step];
  }
  static inline void output(const Floats *e, int step, Floats *t) {
    const Floats sum1 = e[step] + e[2 * step], dif1 = e[step] - e[2 * step],
                 sum2 = e[3 * step] + e[4 * step],
                 dif2 = e[3 * step] - e[4 * step];
    t[0] = e[0] + sum1 + sum2;
    t[1] = p * dif1 + q * dif2;
    t[2] = p * p * sum1 + q * q * sum2;
    t[3] = p * p * p * dif1 + q * q * q * dif2 + e[5 * step];
  }
};

inline Floats loadFirst(const float *data, int64_t count) {
  if (count == kLanes)
    return load(data);
  Floats value = {};
  for (int64_t i = 0; i < count; ++i)
    value[i] = data[i];
  return value;
}
inline void storeFirst(float *data, Floats value, int64_t count) {
  if (count == kLanes)
    return store(data, value);
  for (int64_t i = 0; i < count; ++i)
    data[i] = value[i];
}

/// Channels from `at` on, as many as a vector has, or the last ones.
template <typename Tile>
inline void inputOf(const TileInput &tile, int64_t at, int64_t count) {
  constexpr int n = Tile::kSide + 2;
  Floats pixels[n * n], columns[n * n], row[n];
  for (int i = 0; i < n * n; ++i)
    pixels[i] = loadFirst(tile.pixels[i] + at, count);
  for (int j = 0; j < n; ++j) {
    Tile::input(pixels + j, n, row);
    for (int i = 0; i < n; ++i)
      columns[i * n + j] = row[i];
  }
  for (int i = 0; i < n; ++i) {
    Tile::input(columns + i * n, 1, row);
    for (int j = 0; j < n; ++j)
      storeFirst(tile.to + (i * n + j) * tile.step + at, row[j], count);
  }
}

template <typename Tile>
inline void outputOf(const TileOutput &tile, int64_t at, int64_t count) {
  constexpr int m = Tile::kSide, n = m + 2;
  Floats elements[n * n], columns[m * n], row[m];
  for (int i = 0; i < n * n; ++i)
    elements[i] = loadFirst(tile.from + i * tile.step + at, count);
  for (int j = 0; j < n; ++j) {
    Tile::output(elements + j, n, row);
    for (int i = 0; i < m; ++i)
      columns[i * n + j] = row[i];
  }
  const Floats bias = tile.bias ? loadFirst(tile.bias + at, count) : Floats{};
  const Floats least = splat(tile.least), most = splat(tile.most);
  for (int i = 0; i < m; ++i) {
    Tile::output(columns + i * n, 1, row);
    for (int j = 0; j < m; ++j) {
      float *pixel = tile.pixels[i * m + j];
      if (!pixel)
        continue;
      // What is no number stays so.
      Floats value = row[j] + bias;
      value = value < least ? least : value;
      value = value > most ? most : value;
      storeFirst(pixel + at, value, count);
    }
  }
}

template <typename Tile> void inputTile(const TileInput &tile) {
  int64_t at = 0;
  for (; at + kLanes <= tile.channels; at += kLanes)
    inputOf<Tile>(tile, at, kLanes);
  if (at < tile.channels)
    inputOf<Tile>(tile, at, tile.channels - at);
}

template <typename Tile> void outputTile(const TileOutput &tile) {
  int64_t at = 0;
  for (; at + kLanes <= tile.channels; at += kLanes)
    outputOf<Tile>(tile, at, kLanes);
  if (at < tile.channels)
    outputOf<Tile>(tile, at, tile.channels - at);
}

} // namespace

TileFunctions PARTITA_LEVEL(tileFunctions)() {
  return {inputTile<Tile2>, inputTile<Tile4>, outputTile<Tile2>,
          outputTile<Tile4>};
}

} // namespace partita::runtime

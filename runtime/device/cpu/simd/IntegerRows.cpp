//===- IntegerRows.cpp - Sums of products of small integers, vectorised ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level, as Lanes.h says. The
// instruction is the one that multiplies pairs of 16 bits and adds both
// products, which is exact; its sibling for 8 bits saturates.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/IntegerRows.h"

#include "runtime/device/cpu/simd/Lanes.h"

#include <cstring>
#include <immintrin.h>

namespace partita::runtime {
namespace {

#if PARTITA_LANES == 16
using Pairs = __m512i;
Pairs multiply(Pairs a, Pairs b) { return _mm512_madd_epi16(a, b); }
#elif PARTITA_LANES == 8
using Pairs = __m256i;
Pairs multiply(Pairs a, Pairs b) { return _mm256_madd_epi16(a, b); }
#else
using Pairs = __m128i;
Pairs multiply(Pairs a, Pairs b) { return _mm_madd_epi16(a, b); }
#endif

/// The lanes of `Pairs` as numbers; unsigned, so that sums wrap around.
using Sums [[gnu::vector_size(sizeof(Pairs))]] = uint32_t;

void tile(IntegerTile &tile) {
  constexpr int kVectors = kIntegerColumns / PARTITA_LANES;
  Sums sums[kIntegerRows][kVectors] = {};
  for (int64_t k = 0; k < tile.depth; k += 2) {
    Pairs right[kVectors];
    std::memcpy(right, tile.right + k * kIntegerColumns, sizeof(right));
#pragma GCC unroll 6
    for (int i = 0; i < kIntegerRows; ++i) {
      uint32_t pair;
      std::memcpy(&pair, tile.left + i * tile.depth + k, sizeof(pair));
      const auto left = Pairs(pair - Sums{});
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[i][v] += Sums(multiply(left, right[v]));
    }
  }
  static_assert(sizeof(sums) == sizeof(tile.sums));
  std::memcpy(tile.sums, sums, sizeof(sums));
}

template <typename Element>
void widenAs(const uint8_t *from, int64_t count, int16_t *to) {
  constexpr int kBlock = 2 * PARTITA_LANES;
  using Narrow [[gnu::vector_size(kBlock)]] = Element;
  using Wide [[gnu::vector_size(2 * kBlock)]] = int16_t;
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Narrow narrow;
    std::memcpy(&narrow, from + i, sizeof(narrow));
    const Wide wide = __builtin_convertvector(narrow, Wide);
    std::memcpy(to + i, &wide, sizeof(wide));
  }
  for (; i < count; ++i)
    to[i] = static_cast<Element>(from[i]);
}

void widen(const uint8_t *from, int64_t count, bool has_sign, int16_t *to) {
  if (has_sign)
    widenAs<int8_t>(from, count, to);
  else
    widenAs<uint8_t>(from, count, to);
}

/// Channels at a time, whose sums stay in registers.
template <typename Element, int count>
void addTaps(const IntegerPixel &pixel, int64_t begin) {
  int32_t sums[count] = {};
  for (int64_t tap = 0; tap < pixel.taps; ++tap) {
    if (!pixel.pixels[tap])
      continue;
    const auto *from =
        reinterpret_cast<const Element *>(pixel.pixels[tap]) + begin;
    const int16_t *weights = pixel.weights + tap * pixel.channels + begin;
    for (int c = 0; c < count; ++c)
      sums[c] += int32_t(from[c]) * weights[c];
  }
  std::memcpy(pixel.to + begin, sums, sizeof(sums));
}

template <typename Element> void addAllTaps(const IntegerPixel &pixel) {
  constexpr int kBlock = 2 * PARTITA_LANES;
  int64_t begin = 0;
  for (; begin + kBlock <= pixel.channels; begin += kBlock)
    addTaps<Element, kBlock>(pixel, begin);
  for (; begin < pixel.channels; ++begin)
    addTaps<Element, 1>(pixel, begin);
}

void pixel(const IntegerPixel &pixel) {
  if (pixel.has_sign)
    addAllTaps<int8_t>(pixel);
  else
    addAllTaps<uint8_t>(pixel);
}

} // namespace

IntegerFunctions PARTITA_LEVEL(integerFunctions)() {
  return {tile, widen, pixel};
}

} // namespace partita::runtime

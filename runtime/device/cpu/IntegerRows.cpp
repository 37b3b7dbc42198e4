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

#include "runtime/device/cpu/IntegerRows.h"

#include "runtime/device/cpu/Lanes.h"

#include <cstring>
#include <immintrin.h>

namespace partita::runtime {
namespace {

#if PARTITA_LANES == 16
using Pairs = __m512i;
Pairs load(const int16_t *from) { return _mm512_loadu_si512(from); }
Pairs multiply(Pairs a, Pairs b) { return _mm512_madd_epi16(a, b); }
#elif PARTITA_LANES == 8
using Pairs = __m256i;
Pairs load(const int16_t *from) {
  return _mm256_loadu_si256(reinterpret_cast<const Pairs *>(from));
}
Pairs multiply(Pairs a, Pairs b) { return _mm256_madd_epi16(a, b); }
#else
using Pairs = __m128i;
Pairs load(const int16_t *from) {
  return _mm_loadu_si128(reinterpret_cast<const Pairs *>(from));
}
Pairs multiply(Pairs a, Pairs b) { return _mm_madd_epi16(a, b); }
#endif

/// The lanes of `Pairs` as numbers; unsigned, so that sums wrap around.
using Sums [[gnu::vector_size(sizeof(Pairs))]] = uint32_t;

uint32_t addUp(Sums sums) {
  uint32_t all = 0;
  for (int i = 0; i < PARTITA_LANES; ++i)
    all += sums[i];
  return all;
}

void tile(IntegerTile &tile) {
  Sums sums[kIntegerTile][kIntegerTile] = {};
  for (int64_t k = 0; k < tile.depth; k += 2 * PARTITA_LANES) {
    Pairs right[kIntegerTile];
#pragma GCC unroll 4
    for (int j = 0; j < kIntegerTile; ++j)
      right[j] = load(tile.right + j * tile.depth + k);
#pragma GCC unroll 4
    for (int i = 0; i < kIntegerTile; ++i) {
      const Pairs left = load(tile.left + i * tile.depth + k);
#pragma GCC unroll 4
      for (int j = 0; j < kIntegerTile; ++j)
        sums[i][j] += Sums(multiply(left, right[j]));
    }
  }
  for (int i = 0; i < kIntegerTile; ++i)
    for (int j = 0; j < kIntegerTile; ++j)
      tile.sums[i][j] = static_cast<int32_t>(addUp(sums[i][j]));
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

IntegerFunctions PARTITA_LEVEL(integerFunctions)() { return {tile, pixel}; }

} // namespace partita::runtime

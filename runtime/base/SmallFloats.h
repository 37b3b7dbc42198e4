//===- SmallFloats.h - Blocks of f16 and bf16 as f32 ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For files that are compiled once for each instruction-set level, too.
// The conversions give the same bits at each level. They round to nearest,
// halves to even. NaN keeps its sign and the upper bits of its payload, and
// becomes quiet. They do not depend on whether the thread flushes denormals to
// zero.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_SMALLFLOATS_H
#define PARTITA_RUNTIME_BASE_SMALLFLOATS_H

#include <cstdint>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace partita::runtime {
namespace {

inline uint32_t bitsOf(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
inline float floatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }

#ifdef __F16C__
inline void widenHalfs(const uint16_t *from, float *to, int count) {
  for (int i = 0; i < count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                 reinterpret_cast<const __m128i *>(from + i))));
}
inline void narrowHalfs(const float *from, uint16_t *to, int count) {
  for (int i = 0; i < count; i += 8)
    _mm_storeu_si128(
        reinterpret_cast<__m128i *>(to + i),
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
}
#else
inline float widenHalf(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16, rest = half & 0x7fff;
  if (rest < 0x400) // denormal: a multiple of 2^-24
    return floatOf(sign | bitsOf(float(rest) * 0x1p-24f));
  if (rest < 0x7c00)
    return floatOf(sign | ((rest << 13) + (112u << 23)));
  return floatOf(sign | 0x7f800000 | (rest << 13) |
                 (rest > 0x7c00 ? 0x400000 : 0));
}
inline uint16_t narrowHalf(float value) {
  const uint32_t bits = bitsOf(value), rest = bits & 0x7fffffff;
  const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  if (rest > 0x7f800000)
    return sign | 0x7e00 | (rest >> 13 & 0x3ff);
  if (rest >= 0x47800000) // 2^16
    return sign | 0x7c00;
  if (rest < 0x38800000) // below 2^-14: a unit in the last place of .5 is 2^-24
    return sign | uint16_t(bitsOf(floatOf(rest) + .5f) - bitsOf(.5f));
  return sign |
         uint16_t((rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13);
}
inline void widenHalfs(const uint16_t *from, float *to, int count) {
  for (int i = 0; i < count; ++i)
    to[i] = widenHalf(from[i]);
}
inline void narrowHalfs(const float *from, uint16_t *to, int count) {
  for (int i = 0; i < count; ++i)
    to[i] = narrowHalf(from[i]);
}
#endif

inline void widenBrains(const uint16_t *from, float *to, int count) {
  for (int i = 0; i < count; ++i)
    to[i] = floatOf(uint32_t(from[i]) << 16);
}
inline void narrowBrains(const float *from, uint16_t *to, int count) {
  for (int i = 0; i < count; ++i) {
    const uint32_t bits = bitsOf(from[i]);
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t nan = bits >> 16 | 0x40;
    to[i] = uint16_t((bits & 0x7fffffff) > 0x7f800000 ? nan : nearest);
  }
}

} // namespace
} // namespace partita::runtime

#endif // PARTITA_RUNTIME_BASE_SMALLFLOATS_H

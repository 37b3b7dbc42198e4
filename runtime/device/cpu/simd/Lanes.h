//===- Lanes.h - Vectors of floats, for code of one processor ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For files that are compiled once for each instruction-set level, as
// LevelName.h says. Everything here is in an anonymous namespace, so that each
// file has its own copy.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CPU_SIMD_LANES_H
#define PARTITA_RUNTIME_DEVICE_CPU_SIMD_LANES_H

#include "runtime/base/LevelName.h"

#include <cstdint>

namespace partita::runtime {
namespace {

constexpr int kLanes = PARTITA_LANES;
typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));

inline Floats splat(float value) { return value - Floats{}; }

inline Floats load(const float *data) {
  Floats value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}
inline void store(float *data, Floats value) {
  __builtin_memcpy(data, &value, sizeof(value));
}

/// exp(x) for x <= 0, NaN for NaN: 2^n * p(r) with x = n ln 2 + r and Cephes'
/// polynomial p; 0 where the result would be denormal.
inline Floats expOf(Floats x) {
  const Floats least = splat(-87.33f), magic = splat(12582912.0f);
  Floats bounded = x < least ? least : x;
  Floats shifted = bounded * 1.44269504088896341f + magic;
  Floats n = shifted - magic;
  Ints exponent = __builtin_bit_cast(Ints, shifted);
  Floats r = bounded - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // The low bits of `shifted` are n; the shift drops all others.
  Ints power = (exponent + 127) << 23;
  Floats value = p * __builtin_bit_cast(Floats, power);
  return x < least ? Floats{} : value;
}

} // namespace
} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CPU_SIMD_LANES_H

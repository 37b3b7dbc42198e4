//===- GateRows.cpp - The usual functions of gates, vectorised ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction-set level; see Lanes.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/simd/GateRows.h"

#include "runtime/device/cpu/simd/Lanes.h"

namespace partita::runtime {
namespace {

inline Floats magnitudeOf(Floats x) {
  return __builtin_bit_cast(Floats, __builtin_bit_cast(Ints, x) & 0x7fffffff);
}

inline Floats logisticOf(Floats x) {
  Floats small = expOf(-magnitudeOf(x)); // of -|x|: cannot overflow
  return (x < splat(0) ? small : splat(1)) / (small + 1.0f);
}

/// Cephes' polynomial near 0, where the quotient would lose digits.
inline Floats tanhOf(Floats x) {
  Floats magnitude = magnitudeOf(x);
  Floats small = expOf(-2.0f * magnitude);
  Floats far = (1.0f - small) / (1.0f + small);
  far = x < splat(0) ? -far : far;
  Floats z = x * x;
  Floats p = splat(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  Floats near = p * z * x + x;
  return magnitude < splat(0.625f) ? near : far;
}

template <typename Function>
inline void map(float *values, int64_t count, Function function) {
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes)
    store(values + at, function(load(values + at)));
  if (at == count)
    return;
  Floats rest = {};
  for (int64_t i = at; i < count; ++i)
    rest[i - at] = values[i];
  rest = function(rest);
  for (int64_t i = at; i < count; ++i)
    values[i] = rest[i - at];
}

} // namespace

void PARTITA_LEVEL(logisticRow)(float *values, int64_t count) {
  map(values, count, [](Floats x) { return logisticOf(x); });
}

void PARTITA_LEVEL(tanhRow)(float *values, int64_t count) {
  map(values, count, [](Floats x) { return tanhOf(x); });
}

} // namespace partita::runtime

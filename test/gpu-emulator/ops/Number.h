//===- Number.h - Floating-point formats ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_OPS_NUMBER_H
#define PARTITA_TEST_GPUEMULATOR_OPS_NUMBER_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace gpuemu {

/// Numbers of 16 bits, as registers hold them.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

/// The one NaN that single and half precision operations give.
constexpr uint32_t floatNan = 0x7fffffff;
constexpr uint16_t halfNan = 0x7fff;

inline float bitsToFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t floatToBits(float value) {
  return std::bit_cast<uint32_t>(value);
}

/// A subnormal number becomes a zero of its sign.
inline float flush(float value) {
  uint32_t bits = floatToBits(value);
  return bitsToFloat((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}
inline double flush(double value) { return value; }

/// Clamps to [0, 1]; NaN becomes 0.
template <typename T> T saturated(T value) {
  return value > T(0) ? value < T(1) ? value : T(1) : T(0);
}

inline float canonical(float value) {
  return value != value ? bitsToFloat(floatNan) : value;
}
inline double canonical(double value) { return value; }

inline float toFloat(Half value) {
  return float(std::bit_cast<_Float16>(value.bits));
}
inline float toFloat(BFloat value) {
  return bitsToFloat(uint32_t(value.bits) << 16);
}

inline uint16_t roundHalf(float value) {
  return value != value ? halfNan : std::bit_cast<uint16_t>(_Float16(value));
}
/// Rounds once, from a double.
uint16_t roundHalf(double value);
inline uint16_t roundBFloat(float value) {
  uint32_t bits = floatToBits(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return value != value ? halfNan : uint16_t(rounded);
}
uint16_t roundBFloat(double value);

inline Half toHalf(float value) { return {roundHalf(value)}; }
inline BFloat toBFloat(float value) { return {roundBFloat(value)}; }

/// a + b with the last bit set where the sum is not exact ("round to odd"): a
/// second rounding, to half as many bits, is then as good as the only one.
double addToOdd(double a, double b);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_OPS_NUMBER_H

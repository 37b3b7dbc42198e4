//===- SoftFloat.h - Floating-point arithmetic by its definition *- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What instructions are compared with: exact results as large integers, rounded
// once. Nothing here uses the processor's floating-point operations.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_TESTS_SOFTFLOAT_H
#define PARTITA_TEST_GPUEMULATOR_TESTS_SOFTFLOAT_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace gpuemu::test {

/// A format: bits of the exponent and of the fraction.
struct Format {
  unsigned exponent, fraction;
  uint64_t nan;
  unsigned bits() const { return 1 + exponent + fraction; }
  uint64_t infinity() const {
    return ((uint64_t(1) << exponent) - 1) << fraction;
  }
  uint64_t sign() const { return uint64_t(1) << (bits() - 1); }
};
inline constexpr Format half{5, 10, 0x7fff};
inline constexpr Format bfloat{8, 7, 0x7fff};
inline constexpr Format single{8, 23, 0x7fffffff};
inline constexpr Format twice{11, 52, 0x7ff8000000000000};
const Format &formatNamed(std::string_view type);

bool isNan(const Format &format, uint64_t bits);
bool isSubnormal(const Format &format, uint64_t bits);
/// A subnormal number as a zero of its sign.
uint64_t flushed(const Format &format, uint64_t bits);

/// `rounding`: rn, rz, rm or rp.
uint64_t add(const Format &format, std::string_view rounding, uint64_t a,
             uint64_t b);
uint64_t multiply(const Format &format, std::string_view rounding, uint64_t a,
                  uint64_t b);
uint64_t fma(const Format &format, std::string_view rounding, uint64_t a,
             uint64_t b, uint64_t c);
uint64_t divide(const Format &format, std::string_view rounding, uint64_t a,
                uint64_t b);
uint64_t squareRoot(const Format &format, std::string_view rounding,
                    uint64_t a);
uint64_t convert(const Format &to, std::string_view rounding,
                 const Format &from, uint64_t a);
uint64_t fromInteger(const Format &to, std::string_view rounding,
                     bool isNegative, uint64_t magnitude);
/// `rounding`: rni, rzi, rmi or rpi. Out of range: the nearest integer; NaN: 0.
__int128 toInteger(const Format &from, std::string_view rounding, uint64_t a,
                   __int128 least, __int128 most);

/// Zeros, ones, limits, subnormal numbers, infinities, NaN, numbers that lie
/// halfway, and some at random.
std::vector<uint64_t> interesting(const Format &format, unsigned random);

} // namespace gpuemu::test

#endif // PARTITA_TEST_GPUEMULATOR_TESTS_SOFTFLOAT_H

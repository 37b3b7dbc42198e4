//===- SoftFloat.cpp - Floating-point arithmetic by definition --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/SoftFloat.h"

#include <algorithm>
#include <array>
#include <random>

using namespace gpuemu::test;

namespace {

using Wide = unsigned __int128;

/// A number that is not negative: an integer times 2^-scale. The range holds
/// the product of any two numbers in double precision.
constexpr int scale = 2304;
constexpr size_t words = 2 * scale / 32 + 8;
struct Large {
  std::array<uint32_t, words> word{};

  static Large of(Wide value, int exponent) {
    Large result;
    int at = exponent + scale;
    for (int i = 0; i < 128; ++i)
      if (value >> i & 1)
        result.word[size_t(at + i) / 32] |= 1u << (at + i) % 32;
    return result;
  }
  bool bit(int i) const {
    return i >= 0 && size_t(i) < 32 * words &&
           word[size_t(i) / 32] >> i % 32 & 1;
  }
  int highest() const {
    for (size_t i = words; i-- > 0;)
      if (word[i])
        return int(32 * i) + 31 - __builtin_clz(word[i]);
    return -1;
  }
  bool anyBelow(int i) const {
    for (int j = 0; j < i; ++j)
      if (bit(j))
        return true;
    return false;
  }
  bool operator<(const Large &other) const {
    return std::lexicographical_compare(word.rbegin(), word.rend(),
                                        other.word.rbegin(), other.word.rend());
  }
};

Large sum(const Large &a, const Large &b) {
  Large result;
  uint64_t carry = 0;
  for (size_t i = 0; i < words; ++i) {
    carry += uint64_t(a.word[i]) + b.word[i];
    result.word[i] = uint32_t(carry);
    carry >>= 32;
  }
  return result;
}
Large difference(const Large &a, const Large &b) {
  Large result;
  int64_t borrow = 0;
  for (size_t i = 0; i < words; ++i) {
    int64_t value = int64_t(a.word[i]) - b.word[i] + borrow;
    result.word[i] = uint32_t(value);
    borrow = value < 0 ? -1 : 0;
  }
  return result;
}

struct Exact {
  bool isNegative = false;
  Large magnitude;
};

/// A finite number as mantissa and exponent.
struct Parts {
  bool isNegative;
  uint64_t mantissa;
  int exponent;
};
Parts partsOf(const Format &f, uint64_t bits) {
  uint64_t fraction = bits & ((uint64_t(1) << f.fraction) - 1);
  int exponent = int(bits >> f.fraction & ((uint64_t(1) << f.exponent) - 1));
  int bias = (1 << (f.exponent - 1)) - 1;
  bool isNegative = (bits & f.sign()) != 0;
  if (exponent == 0)
    return {isNegative, fraction, 1 - bias - int(f.fraction)};
  return {isNegative, fraction | uint64_t(1) << f.fraction,
          exponent - bias - int(f.fraction)};
}

bool isInfinite(const Format &f, uint64_t bits) {
  return (bits & ~f.sign()) == f.infinity();
}

/// Whether a magnitude between two neighbours becomes the larger one.
bool roundsUp(std::string_view rounding, bool isNegative, bool isOdd, bool half,
              bool rest) {
  if (!half && !rest)
    return false;
  if (rounding[1] == 'n')
    return half && (rest || isOdd);
  if (rounding[1] == 'z')
    return false;
  return (rounding[1] == 'm') == isNegative;
}

uint64_t rounded(const Format &f, std::string_view rounding,
                 const Exact &value) {
  uint64_t sign = value.isNegative ? f.sign() : 0;
  int top = value.magnitude.highest();
  if (top < 0)
    return sign;
  int bias = (1 << (f.exponent - 1)) - 1;
  // The place of the last bit that is kept; subnormal numbers have fewer.
  int last =
      std::max(top - int(f.fraction), scale + 1 - bias - int(f.fraction));
  uint64_t mantissa = 0;
  for (int i = top; i >= last; --i)
    mantissa = mantissa << 1 | uint64_t(value.magnitude.bit(i));
  bool half = value.magnitude.bit(last - 1);
  bool rest = value.magnitude.anyBelow(last - 1);
  if (roundsUp(rounding, value.isNegative, mantissa & 1, half, rest))
    ++mantissa;
  int exponent = last - scale + int(f.fraction) + bias;
  if (mantissa >> (f.fraction + 1)) {
    mantissa >>= 1;
    ++exponent;
  }
  if (!(mantissa >> f.fraction)) // subnormal, or zero
    return sign | mantissa;
  if (exponent >= (1 << f.exponent) - 1) {
    bool toInfinity =
        rounding[1] == 'n' ||
        (rounding[1] != 'z' && (rounding[1] == 'm') == value.isNegative);
    return sign | (toInfinity ? f.infinity() : f.infinity() - 1);
  }
  uint64_t fraction = mantissa & ((uint64_t(1) << f.fraction) - 1);
  return sign | uint64_t(exponent) << f.fraction | fraction;
}

uint64_t roundedSum(const Format &f, std::string_view rounding, const Exact &a,
                    const Exact &b) {
  if (a.isNegative == b.isNegative)
    return rounded(f, rounding, {a.isNegative, sum(a.magnitude, b.magnitude)});
  bool less = a.magnitude < b.magnitude;
  Exact result{less ? b.isNegative : a.isNegative,
               less ? difference(b.magnitude, a.magnitude)
                    : difference(a.magnitude, b.magnitude)};
  if (result.magnitude.highest() < 0) // an exact zero
    result.isNegative = rounding[1] == 'm';
  return rounded(f, rounding, result);
}

Exact exactOf(const Format &f, uint64_t bits) {
  Parts parts = partsOf(f, bits);
  return {parts.isNegative, Large::of(parts.mantissa, parts.exponent)};
}

} // namespace

const Format &gpuemu::test::formatNamed(std::string_view type) {
  return type == "f16"    ? half
         : type == "bf16" ? bfloat
         : type == "f32"  ? single
                          : twice;
}

bool gpuemu::test::isNan(const Format &f, uint64_t bits) {
  return (bits & ~f.sign()) > f.infinity();
}

bool gpuemu::test::isSubnormal(const Format &f, uint64_t bits) {
  return (bits & f.infinity()) == 0 && (bits & ~f.sign()) != 0;
}

uint64_t gpuemu::test::flushed(const Format &f, uint64_t bits) {
  return isSubnormal(f, bits) ? bits & f.sign() : bits;
}

uint64_t gpuemu::test::add(const Format &f, std::string_view rounding,
                           uint64_t a, uint64_t b) {
  return fma(f, rounding, a,
             uint64_t((1 << (f.exponent - 1)) - 1) << f.fraction, b);
}

uint64_t gpuemu::test::multiply(const Format &f, std::string_view rounding,
                                uint64_t a, uint64_t b) {
  // The sign of a zero that is added must not count.
  uint64_t zero = (a ^ b) & f.sign();
  return fma(f, rounding, a, b, zero);
}

uint64_t gpuemu::test::fma(const Format &f, std::string_view rounding,
                           uint64_t a, uint64_t b, uint64_t c) {
  if (isNan(f, a) || isNan(f, b) || isNan(f, c))
    return f.nan;
  uint64_t sign = (a ^ b) & f.sign();
  bool infiniteProduct = isInfinite(f, a) || isInfinite(f, b);
  if (infiniteProduct) {
    bool zero = !(a & ~f.sign()) || !(b & ~f.sign());
    if (zero || (isInfinite(f, c) && (c & f.sign()) != sign))
      return f.nan;
    return sign | f.infinity();
  }
  if (isInfinite(f, c))
    return c;
  Parts p = partsOf(f, a), q = partsOf(f, b);
  Exact product{sign != 0, Large::of(Wide(p.mantissa) * q.mantissa,
                                     p.exponent + q.exponent)};
  return roundedSum(f, rounding, product, exactOf(f, c));
}

uint64_t gpuemu::test::divide(const Format &f, std::string_view rounding,
                              uint64_t a, uint64_t b) {
  if (isNan(f, a) || isNan(f, b))
    return f.nan;
  uint64_t sign = (a ^ b) & f.sign();
  bool zeroA = !(a & ~f.sign()), zeroB = !(b & ~f.sign());
  if ((zeroA && zeroB) || (isInfinite(f, a) && isInfinite(f, b)))
    return f.nan;
  if (isInfinite(f, a) || zeroB)
    return sign | f.infinity();
  if (zeroA || isInfinite(f, b))
    return sign;
  Parts p = partsOf(f, a), q = partsOf(f, b);
  // The quotient to 74 bits or more, and a bit that says what is left.
  int shift = 127 - (64 - __builtin_clzll(p.mantissa));
  Wide dividend = Wide(p.mantissa) << shift;
  Wide quotient = dividend / q.mantissa;
  bool rest = dividend % q.mantissa != 0;
  int exponent = p.exponent - q.exponent - shift;
  Exact value{sign != 0, Large::of(quotient << 1 | Wide(rest), exponent - 1)};
  return rounded(f, rounding, value);
}

uint64_t gpuemu::test::squareRoot(const Format &f, std::string_view rounding,
                                  uint64_t a) {
  if (isNan(f, a))
    return f.nan;
  if (!(a & ~f.sign()))
    return a;
  if (a & f.sign())
    return f.nan;
  if (isInfinite(f, a))
    return a;
  Parts p = partsOf(f, a);
  int shift = 126 - (64 - __builtin_clzll(p.mantissa));
  if ((p.exponent - shift) % 2)
    --shift;
  Wide value = Wide(p.mantissa) << shift, root = 0;
  for (int i = 63; i >= 0; --i) {
    Wide next = root | Wide(1) << i;
    if (next * next <= value)
      root = next;
  }
  bool rest = root * root != value;
  Exact result{false,
               Large::of(root << 1 | Wide(rest), (p.exponent - shift) / 2 - 1)};
  return rounded(f, rounding, result);
}

uint64_t gpuemu::test::convert(const Format &to, std::string_view rounding,
                               const Format &from, uint64_t a) {
  if (isNan(from, a))
    return to.nan;
  if (isInfinite(from, a))
    return to.infinity() | (a & from.sign() ? to.sign() : 0);
  return rounded(to, rounding, exactOf(from, a));
}

uint64_t gpuemu::test::fromInteger(const Format &to, std::string_view rounding,
                                   bool isNegative, uint64_t magnitude) {
  return rounded(to, rounding, {isNegative, Large::of(magnitude, 0)});
}

__int128 gpuemu::test::toInteger(const Format &from, std::string_view rounding,
                                 uint64_t a, __int128 least, __int128 most) {
  if (isNan(from, a))
    return 0;
  bool isNegative = (a & from.sign()) != 0;
  if (isInfinite(from, a))
    return isNegative ? least : most;
  Large magnitude = exactOf(from, a).magnitude;
  if (magnitude.highest() > scale + 100)
    return isNegative ? least : most;
  __int128 whole = 0;
  for (int i = magnitude.highest(); i >= scale; --i)
    whole = whole << 1 | __int128(magnitude.bit(i));
  if (roundsUp(rounding, isNegative, whole & 1, magnitude.bit(scale - 1),
               magnitude.anyBelow(scale - 1)))
    ++whole;
  return std::clamp(isNegative ? -whole : whole, least, most);
}

std::vector<uint64_t> gpuemu::test::interesting(const Format &f,
                                                unsigned random) {
  uint64_t one = uint64_t((1 << (f.exponent - 1)) - 1) << f.fraction;
  uint64_t smallest = uint64_t(1) << f.fraction; // that is normal
  std::vector<uint64_t> result = {
      0,
      1,
      2,
      smallest / 2,
      smallest - 1,
      smallest,
      smallest + 1,
      one - 1,
      one,
      one + 1,
      one + smallest / 2,
      one + smallest,
      one + smallest + smallest / 2,
      one - smallest,
      f.infinity() - 1,
      f.infinity(),
      f.infinity() + 1,
      f.nan,
      one + f.fraction * smallest + 1,
      one - f.fraction * smallest,
      one + (f.fraction + 1) * smallest,
  };
  std::mt19937_64 generator(f.bits());
  for (unsigned i = 0; i < random; ++i)
    result.push_back(generator() & (f.sign() - 1));
  // Near to one, where sums cancel.
  for (unsigned i = 0; i < random; ++i)
    result.push_back(one + generator() % (4 * smallest) - smallest);
  size_t count = result.size();
  for (size_t i = 0; i < count; ++i)
    result.push_back(result[i] | f.sign());
  return result;
}

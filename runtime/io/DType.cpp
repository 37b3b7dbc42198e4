//===- DType.cpp - Element types in memory and in files -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DType.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace partita::runtime {

using abi::DType;

const char *dtypeName(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return "float32";
  case DType::f64:
    return "float64";
  case DType::f16:
    return "float16";
  case DType::bf16:
    return "bfloat16";
  case DType::i8:
    return "int8";
  case DType::i16:
    return "int16";
  case DType::i32:
    return "int32";
  case DType::i64:
    return "int64";
  case DType::u8:
    return "uint8";
  case DType::u16:
    return "uint16";
  case DType::u32:
    return "uint32";
  case DType::u64:
    return "uint64";
  case DType::boolean:
    return "bool";
  case DType::f8e4m3fn:
    return "float8_e4m3fn";
  case DType::f8e4m3fnuz:
    return "float8_e4m3fnuz";
  case DType::f8e5m2:
    return "float8_e5m2";
  case DType::f8e5m2fnuz:
    return "float8_e5m2fnuz";
  case DType::f8e8m0:
    return "float8_e8m0fnu";
  case DType::f4e2m1:
    return "float4_e2m1fn";
  case DType::i4:
    return "int4";
  case DType::u4:
    return "uint4";
  case DType::i2:
    return "int2";
  case DType::u2:
    return "uint2";
  }
  return "unknown";
}

bool isFloat(DType dtype) {
  switch (dtype) {
  case DType::f32:
  case DType::f64:
  case DType::f16:
  case DType::bf16:
  case DType::f8e4m3fn:
  case DType::f8e4m3fnuz:
  case DType::f8e5m2:
  case DType::f8e5m2fnuz:
  case DType::f8e8m0:
  case DType::f4e2m1:
    return true;
  default:
    return false;
  }
}

bool isSigned(DType dtype) {
  switch (dtype) {
  case DType::u8:
  case DType::u16:
  case DType::u32:
  case DType::u64:
  case DType::u4:
  case DType::u2:
  case DType::boolean:
  case DType::f8e8m0:
    return false;
  default:
    return true;
  }
}

namespace {

template <typename T> T load(const uint8_t *element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

/// What a float format does with its largest exponent.
enum class Specials {
  ieee, ///< infinities and NaNs
  fn,   ///< no infinity; NaN is all ones
  fnuz, ///< no infinity, no negative zero; its pattern is the NaN
  none  ///< every pattern is a number
};

double decode(uint32_t bits, int exponentBits, int mantissaBits, int bias,
              Specials specials) {
  uint32_t exponentMask = (1u << exponentBits) - 1;
  uint32_t mantissaMask = (1u << mantissaBits) - 1;
  uint32_t mantissa = bits & mantissaMask;
  uint32_t exponent = (bits >> mantissaBits) & exponentMask;
  bool negative = (bits >> (mantissaBits + exponentBits)) & 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (specials == Specials::ieee && exponent == exponentMask) {
    if (mantissa)
      return nan;
    double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  if (specials == Specials::fn && exponent == exponentMask &&
      mantissa == mantissaMask)
    return nan;
  if (specials == Specials::fnuz && negative && !exponent && !mantissa)
    return nan;
  double magnitude =
      exponent ? std::ldexp(double(mantissa | (1u << mantissaBits)),
                            int(exponent) - bias - mantissaBits)
               : std::ldexp(double(mantissa), 1 - bias - mantissaBits);
  return negative ? -magnitude : magnitude;
}

} // namespace

double toDouble(DType dtype, const uint8_t *element) {
  switch (dtype) {
  case DType::f32:
    return load<float>(element);
  case DType::f64:
    return load<double>(element);
  case DType::f16:
    return decode(load<uint16_t>(element), 5, 10, 15, Specials::ieee);
  case DType::bf16:
    return decode(load<uint16_t>(element), 8, 7, 127, Specials::ieee);
  case DType::f8e4m3fn:
    return decode(*element, 4, 3, 7, Specials::fn);
  case DType::f8e4m3fnuz:
    return decode(*element, 4, 3, 8, Specials::fnuz);
  case DType::f8e5m2:
    return decode(*element, 5, 2, 15, Specials::ieee);
  case DType::f8e5m2fnuz:
    return decode(*element, 5, 2, 16, Specials::fnuz);
  case DType::f8e8m0:
    return *element == 255 ? std::numeric_limits<double>::quiet_NaN()
                           : std::ldexp(1.0, int(*element) - 127);
  case DType::f4e2m1:
    return decode(*element & 15, 2, 1, 1, Specials::none);
  case DType::u64:
    return double(load<uint64_t>(element));
  default:
    return double(toInteger(dtype, element));
  }
}

int64_t toInteger(DType dtype, const uint8_t *element) {
  switch (dtype) {
  case DType::i8:
  case DType::i4:
  case DType::i2:
    return load<int8_t>(element);
  case DType::i16:
    return load<int16_t>(element);
  case DType::i32:
    return load<int32_t>(element);
  case DType::i64:
    return load<int64_t>(element);
  case DType::u8:
  case DType::u4:
  case DType::u2:
  case DType::boolean:
    return *element;
  case DType::u16:
    return load<uint16_t>(element);
  case DType::u32:
    return load<uint32_t>(element);
  case DType::u64: {
    uint64_t value = load<uint64_t>(element);
    return value <= uint64_t(std::numeric_limits<int64_t>::max())
               ? int64_t(value)
               : 0;
  }
  default:
    return 0;
  }
}

} // namespace partita::runtime

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

namespace {

template <typename T> T load(const uint8_t *element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

double decode(uint32_t bits, const ElementType &type) {
  const int exponentBits = type.exponentBits, mantissaBits = type.mantissaBits;
  uint32_t exponentMask = (1u << exponentBits) - 1;
  uint32_t mantissaMask = (1u << mantissaBits) - 1;
  uint32_t mantissa = bits & mantissaMask;
  uint32_t exponent = (bits >> mantissaBits) & exponentMask;
  bool negative = (bits >> (mantissaBits + exponentBits)) & 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (type.specials == Specials::ieee && exponent == exponentMask) {
    if (mantissa)
      return nan;
    double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  if (type.specials == Specials::fn && exponent == exponentMask &&
      mantissa == mantissaMask)
    return nan;
  if (type.specials == Specials::fnuz && negative && !exponent && !mantissa)
    return nan;
  double magnitude =
      exponent ? std::ldexp(double(mantissa | (1u << mantissaBits)),
                            int(exponent) - type.bias - mantissaBits)
               : std::ldexp(double(mantissa), 1 - type.bias - mantissaBits);
  return negative ? -magnitude : magnitude;
}

} // namespace

double toDouble(DType dtype, const uint8_t *element) {
  switch (dtype) {
  case DType::f32:
    return load<float>(element);
  case DType::f64:
    return load<double>(element);
  case DType::u64:
    return double(load<uint64_t>(element));
  case DType::f8e8m0:
    return *element == 255 ? std::numeric_limits<double>::quiet_NaN()
                           : std::ldexp(1.0, int(*element) - 127);
  default:
    break;
  }
  const ElementType &type = elementType(dtype);
  if (!type.isFloat())
    return double(toInteger(dtype, element));
  const uint32_t bits = type.bytes == 2 ? load<uint16_t>(element) : *element;
  return decode(bits & ((1u << type.bits) - 1), type);
}

int64_t toInteger(DType dtype, const uint8_t *element) {
  const ElementType &type = elementType(dtype);
  const bool isSigned = type.isSigned();
  switch (type.isFloat() ? 0 : type.bytes) {
  case 1:
    return isSigned ? load<int8_t>(element) : *element;
  case 2:
    return isSigned ? load<int16_t>(element) : load<uint16_t>(element);
  case 4:
    return isSigned ? load<int32_t>(element) : int64_t(load<uint32_t>(element));
  case 8: {
    const auto value = load<int64_t>(element);
    return isSigned || value >= 0 ? value : 0;
  }
  default:
    return 0;
  }
}

} // namespace partita::runtime

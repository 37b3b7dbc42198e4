//===- Number.cpp - Floating-point formats ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Number.h"

using namespace gpuemu;

double gpuemu::addToOdd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum))
    return sum;
  double part = sum - a;
  double error = (a - (sum - part)) + (b - part);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1))
    return sum;
  // Towards the error there is a number whose last bit is set.
  bool up = (error > 0) == (sum > 0);
  return std::bit_cast<double>(up ? bits + 1 : bits - 1);
}

namespace {

/// The float whose last bit is set where it is not `value` itself.
float toOdd(double value) {
  auto result = float(value);
  if (double(result) == value || !std::isfinite(value))
    return result;
  if (std::isinf(result))
    return std::copysign(bitsToFloat(0x7f7fffff), result);
  uint32_t bits = floatToBits(result);
  if (bits & 1)
    return result;
  bool up = std::fabs(value) > std::fabs(double(result));
  return bitsToFloat(up ? bits + 1 : bits - 1);
}

} // namespace

uint16_t gpuemu::roundHalf(double value) { return roundHalf(toOdd(value)); }
uint16_t gpuemu::roundBFloat(double value) { return roundBFloat(toOdd(value)); }

//===- Rounding.cpp - Operations with directed rounding ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ops/Rounding.h"

#include <cfenv>
#include <cmath>

using namespace gpuemu;

namespace {

/// The processor's rounding, for as long as the object lives.
class Scope {
public:
  explicit Scope(Rounding rounding) : before(fegetround()) {
    static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                    FE_UPWARD};
    fesetround(modes[int(rounding)]);
  }
  ~Scope() { fesetround(before); }

private:
  int before;
};

/// Values that the compiler does not know keep operations in their places.
template <typename T> T opaque(T value) {
  volatile T hidden = value;
  return hidden;
}

template <typename T>
T computeIn(FloatOperation operation, Rounding rounding, T a, T b, T c) {
  Scope scope(rounding);
  a = opaque(a);
  b = opaque(b);
  c = opaque(c);
  switch (operation) {
  case FloatOperation::Add:
    return opaque(a + b);
  case FloatOperation::Subtract:
    return opaque(a - b);
  case FloatOperation::Multiply:
    return opaque(a * b);
  case FloatOperation::Fma:
    return opaque(std::fma(a, b, c));
  case FloatOperation::Divide:
    return opaque(a / b);
  case FloatOperation::Sqrt:
    return opaque(std::sqrt(a));
  }
  return a;
}

template <typename T, typename I> T convert(Rounding rounding, I value) {
  Scope scope(rounding);
  return opaque(T(opaque(value)));
}

} // namespace

float gpuemu::compute(FloatOperation operation, Rounding rounding, float a,
                      float b, float c) {
  return computeIn(operation, rounding, a, b, c);
}
double gpuemu::compute(FloatOperation operation, Rounding rounding, double a,
                       double b, double c) {
  return computeIn(operation, rounding, a, b, c);
}
float gpuemu::narrow(Rounding rounding, double value) {
  return convert<float>(rounding, value);
}
float gpuemu::fromInteger(Rounding rounding, int64_t value, float) {
  return convert<float>(rounding, value);
}
float gpuemu::fromInteger(Rounding rounding, uint64_t value, float) {
  // The compiler's own conversion of values above 2^63 halves them first, with
  // a sticky bit: right in each mode.
  return convert<float>(rounding, value);
}
double gpuemu::fromInteger(Rounding rounding, int64_t value, double) {
  return convert<double>(rounding, value);
}
double gpuemu::fromInteger(Rounding rounding, uint64_t value, double) {
  return convert<double>(rounding, value);
}

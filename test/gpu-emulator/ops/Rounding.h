//===- Rounding.h - Floating-point operations, directed rounding *- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations that are rounded towards zero, down or up. They are compiled for
// themselves, since the compiler must not move them or compute them early.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_OPS_ROUNDING_H
#define PARTITA_TEST_GPUEMULATOR_OPS_ROUNDING_H

#include <cstdint>
#include <string_view>

namespace gpuemu {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

/// Of `rn`, `rz`, `rm`, `rp` and the empty word.
inline Rounding roundingNamed(std::string_view name) {
  return name == "rz"   ? Rounding::Zero
         : name == "rm" ? Rounding::Down
         : name == "rp" ? Rounding::Up
                        : Rounding::Nearest;
}

enum class FloatOperation : uint8_t {
  Add,
  Subtract,
  Multiply,
  Fma,
  Divide,
  Sqrt
};

float compute(FloatOperation operation, Rounding rounding, float a, float b,
              float c);
double compute(FloatOperation operation, Rounding rounding, double a, double b,
               double c);
float narrow(Rounding rounding, double value);
float fromInteger(Rounding rounding, int64_t value, float);
float fromInteger(Rounding rounding, uint64_t value, float);
double fromInteger(Rounding rounding, int64_t value, double);
double fromInteger(Rounding rounding, uint64_t value, double);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_OPS_ROUNDING_H

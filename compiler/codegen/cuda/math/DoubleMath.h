//===- DoubleMath.h - Functions of f64, by arithmetic -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPUs have no mathematics library without the toolkit. These functions are
// right to about 1e-15, by argument reduction and a series. Rounded to f32 they
// nearly always have the bits of a C library, which computes in f64 as well.
// Values are of f64, or vectors of it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_MATH_DOUBLEMATH_H
#define PARTITA_COMPILER_CODEGEN_CUDA_MATH_DOUBLEMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::codegen::cuda {

class DoubleMath {
public:
  using Value = mlir::Value;

  /// `type`: f64, or a vector of it.
  DoubleMath(mlir::ImplicitLocOpBuilder &b, mlir::Type type)
      : b(b), type(type) {}

  Value exp(Value x);
  Value log(Value x);
  Value log1p(Value x);
  /// Sine and cosine are accurate up to about 1e9: beyond, the multiple of pi/2
  /// that is taken off is not, and the result is only between -1 and 1.
  Value sin(Value x);
  Value cos(Value x);
  Value tan(Value x);
  Value asin(Value x);
  Value acos(Value x);
  Value atan(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);
  Value pow(Value x, Value y);
  /// x - y * trunc(x / y), exactly, if x and y were widened from f32.
  Value rem(Value x, Value y);

private:
  using Compare = mlir::arith::CmpFPredicate;

  Value number(double value);
  Value integer(int64_t value);
  mlir::Type integers();
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value div(Value x, Value y);
  Value fma(Value x, Value y, Value z);
  Value neg(Value x);
  Value abs(Value x);
  Value sqrt(Value x);
  Value round(Value x);
  Value trunc(Value x);
  Value copySign(Value x, Value sign);
  Value compare(Compare predicate, Value x, Value y);
  Value select(Value which, Value x, Value y);
  Value both(Value x, Value y);
  Value bits(Value x);
  Value fromBits(Value x);
  /// 2^n for integers n from -1022 to 1023.
  Value power(Value n);
  /// c[0] + c[1] * x + c[2] * x^2 + ...
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);
  /// sin(x + quarters * pi / 2).
  Value sine(Value x, int64_t quarters);

  mlir::ImplicitLocOpBuilder &b;
  mlir::Type type;
};

} // namespace partita::codegen::cuda

#endif // PARTITA_COMPILER_CODEGEN_CUDA_MATH_DOUBLEMATH_H

//===- ExpandCudaFunctions.cpp - Functions without a library --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GPUs have no mathematics library without the toolkit. These functions are
// right to about 1e-15, by argument reduction and a series. Rounded to f32 they
// nearly always have the bits of a C library, which computes in f64 as well.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace partita::codegen::cuda {

#define GEN_PASS_DEF_EXPANDCUDAFUNCTIONSPASS
#include "compiler/codegen/cuda/Passes.h.inc"

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kLn2High = 0x1.62e42fee00000p-1,
                 kLn2Low = 0x1.a39ef35793c76p-33;

/// Functions of f64, or of vectors of it.
class DoubleMath {
public:
  DoubleMath(ImplicitLocOpBuilder &b, Type type) : b(b), type(type) {}

  /// The value of the op, of f64 operands; null if it is not one of ours.
  Value expand(Operation *op, ArrayRef<Value> x) {
    using Unary = Value (DoubleMath::*)(Value);
    auto function =
        TypeSwitch<Operation *, Unary>(op)
            .Case<math::ExpOp>([](auto) { return &DoubleMath::exp; })
            .Case<math::LogOp>([](auto) { return &DoubleMath::log; })
            .Case<math::Log1pOp>([](auto) { return &DoubleMath::log1p; })
            .Case<math::SinOp>([](auto) { return &DoubleMath::sin; })
            .Case<math::CosOp>([](auto) { return &DoubleMath::cos; })
            .Case<math::TanOp>([](auto) { return &DoubleMath::tan; })
            .Case<math::AsinOp>([](auto) { return &DoubleMath::asin; })
            .Case<math::AcosOp>([](auto) { return &DoubleMath::acos; })
            .Case<math::AtanOp>([](auto) { return &DoubleMath::atan; })
            .Case<math::SinhOp>([](auto) { return &DoubleMath::sinh; })
            .Case<math::CoshOp>([](auto) { return &DoubleMath::cosh; })
            .Case<math::TanhOp>([](auto) { return &DoubleMath::tanh; })
            .Case<math::ErfOp>([](auto) { return &DoubleMath::erf; })
            .Case<math::AsinhOp>([](auto) { return &DoubleMath::asinh; })
            .Case<math::AcoshOp>([](auto) { return &DoubleMath::acosh; })
            .Case<math::AtanhOp>([](auto) { return &DoubleMath::atanh; })
            .Default([](auto) { return Unary(); });
    if (function)
      return (this->*function)(x[0]);
    if (isa<math::PowFOp>(op))
      return pow(x[0], x[1]);
    // Of f64, LLVM's own is as good as any that fits here.
    if (isa<arith::RemFOp>(op) &&
        getElementTypeOrSelf(op->getResult(0)).isF32())
      return rem(x[0], x[1]);
    return {};
  }

private:
  using Compare = arith::CmpFPredicate;

  //===--- Arithmetic -----------------------------------------------------===//

  Value number(double value) {
    TypedAttr attr = b.getF64FloatAttr(value);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, attr);
    return arith::ConstantOp::create(b, attr);
  }
  Type integers() {
    Type element = b.getI64Type();
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.clone(element) : element;
  }
  Value integer(int64_t value) {
    TypedAttr attr = b.getI64IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(integers()))
      attr = DenseElementsAttr::get(vector, attr);
    return arith::ConstantOp::create(b, attr);
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  Value neg(Value x) { return arith::NegFOp::create(b, x); }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, x); }
  Value round(Value x) { return math::RoundEvenOp::create(b, x); }
  Value trunc(Value x) { return math::TruncOp::create(b, x); }
  Value copySign(Value x, Value sign) {
    return math::CopySignOp::create(b, x, sign);
  }
  Value compare(Compare predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, predicate, x, y);
  }
  Value select(Value which, Value x, Value y) {
    return arith::SelectOp::create(b, which, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value bits(Value x) { return arith::BitcastOp::create(b, integers(), x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, type, x); }

  /// 2^n for integers n from -1022 to 1023.
  Value power(Value n) {
    Value biased = arith::AddIOp::create(b, n, integer(1023));
    return fromBits(arith::ShLIOp::create(b, biased, integer(52)));
  }

  /// c[0] + c[1] * x + c[2] * x^2 + ...
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, number(coefficient));
    return sum;
  }

  //===--- Exponential and logarithm --------------------------------------===//

  Value exp(Value x) {
    // x = n ln 2 + r, and a series for r.
    Value least = compare(Compare::OLT, x, number(-750)),
          most = compare(Compare::OGT, x, number(750)),
          isNaN = compare(Compare::UNO, x, x);
    Value kept = select(least, number(-750), x);
    kept = select(most, number(750), kept);
    kept = select(isNaN, number(0), kept);
    Value n = round(mul(kept, number(0x1.71547652b82fep+0)));
    Value r = fma(n, number(-kLn2High), kept);
    r = fma(n, number(-kLn2Low), r);
    SmallVector<double> series{1};
    for (int i = 1; i <= 13; ++i)
      series.push_back(series.back() / i);
    Value value = polynomial(r, series);
    // In two steps: 2^n may be beyond what is finite where the product is not.
    Value whole = arith::FPToSIOp::create(b, integers(), n);
    Value half = arith::ShRSIOp::create(b, whole, integer(1));
    Value rest = arith::SubIOp::create(b, whole, half);
    value = mul(mul(value, power(half)), power(rest));
    return select(isNaN, x, value);
  }

  Value log(Value x) {
    // x = 2^n m, with m from sqrt(1/2) to sqrt(2), and a series for
    // log(m) = 2 artanh((m - 1) / (m + 1)).
    Value isSmall = compare(Compare::OLT, x, number(0x1p-1022));
    Value scaled = select(isSmall, mul(x, number(0x1p54)), x);
    Value image = bits(scaled);
    // The bits of sqrt(1/2), so that the exponent counts from there.
    constexpr int64_t kStart = 0x3fe6a09e667f3bcd;
    Value shifted = arith::SubIOp::create(b, image, integer(kStart));
    Value exponent = arith::ShRSIOp::create(b, shifted, integer(52));
    Value m = fromBits(arith::SubIOp::create(
        b, image, arith::ShLIOp::create(b, exponent, integer(52))));
    Value n = arith::SIToFPOp::create(b, type, exponent);
    n = select(isSmall, sub(n, number(54)), n);
    Value f = div(sub(m, number(1)), add(m, number(1)));
    SmallVector<double> series;
    for (int i = 0; i <= 11; ++i)
      series.push_back(2.0 / (2 * i + 1));
    Value s = mul(f, f);
    // 2 f apart: the rest is small beside it.
    SmallVector<double> tail(series.begin() + 1, series.end());
    Value small = fma(mul(f, s), polynomial(s, tail), mul(n, number(kLn2Low)));
    Value value = fma(n, number(kLn2High), fma(f, number(2), small));
    value = select(compare(Compare::OEQ, x, number(kInfinity)), x, value);
    value =
        select(compare(Compare::OEQ, x, number(0)), number(-kInfinity), value);
    Value isBad = compare(Compare::ULT, x, number(0));
    return select(isBad, number(std::numeric_limits<double>::quiet_NaN()),
                  value);
  }

  Value log1p(Value x) {
    Value sum = add(number(1), x), taken = sub(sum, number(1));
    Value isTiny = compare(Compare::OEQ, taken, number(0));
    Value isInfinite = compare(Compare::OEQ, sum, number(kInfinity));
    Value corrected = mul(log(sum), div(x, taken));
    return select(isTiny, x, select(isInfinite, sum, corrected));
  }

  //===--- Trigonometric functions ----------------------------------------===//

  /// sin(x + quarters * pi / 2). It is accurate up to about 1e9: beyond, the
  /// multiple of pi/2 that is taken off is not, and the result is only between
  /// -1 and 1.
  Value sine(Value x, int64_t quarters) {
    // x = n pi/2 + r, with pi/2 in three parts.
    Value n = round(mul(x, number(2 / kPi)));
    Value r = fma(n, number(-0x1.921fb54400000p+0), x);
    r = fma(n, number(-0x1.0b4611a600000p-34), r);
    r = fma(n, number(-0x1.3198a2e037073p-69), r);
    SmallVector<double> sines{1}, cosines{1};
    for (int i = 1; i <= 8; ++i) {
      sines.push_back(-sines.back() / ((2 * i) * (2 * i + 1)));
      cosines.push_back(-cosines.back() / ((2 * i - 1) * (2 * i)));
    }
    Value s = mul(r, r);
    SmallVector<double> tail(sines.begin() + 1, sines.end());
    Value sinR = fma(mul(r, s), polynomial(s, tail), r);
    Value cosR = polynomial(s, cosines);
    // Nothing is left of a number too large to count its quarters.
    Value isCounted = compare(Compare::OLT, abs(n), number(0x1p62));
    Value counted = select(isCounted, n, number(0));
    Value turn = arith::AddIOp::create(
        b, arith::FPToSIOp::create(b, integers(), counted), integer(quarters));
    auto hasBit = [&](int64_t bit) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                   arith::AndIOp::create(b, turn, integer(bit)),
                                   integer(0));
    };
    Value value = select(hasBit(1), cosR, sinR);
    value = select(hasBit(2), neg(value), value);
    // Of too large a number the rest is wrong, and may be large itself.
    value = select(compare(Compare::OGT, value, number(1)), number(1), value);
    value = select(compare(Compare::OLT, value, number(-1)), number(-1), value);
    // Infinity and NaN.
    Value isFinite = compare(Compare::OLT, abs(x), number(kInfinity));
    return select(isFinite, value, sub(x, x));
  }

  Value sin(Value x) {
    // Zero keeps its sign.
    return select(compare(Compare::OEQ, x, number(0)), x, sine(x, 0));
  }
  Value cos(Value x) { return sine(x, 1); }
  Value tan(Value x) { return div(sin(x), cos(x)); }

  Value atan(Value x) {
    // Above 1 of the reciprocal, above tan(pi/8) of the rest to pi/4.
    Value a = abs(x);
    Value isLarge = compare(Compare::OGT, a, number(1));
    Value t = select(isLarge, div(number(1), a), a);
    Value isUpper = compare(Compare::OGT, t, number(0.41421356237309503));
    Value u = select(isUpper, div(sub(t, number(1)), add(t, number(1))), t);
    SmallVector<double> tail;
    for (int i = 1; i <= 22; ++i)
      tail.push_back((i % 2 ? -1.0 : 1.0) / (2 * i + 1));
    Value s = mul(u, u);
    Value value = fma(mul(u, s), polynomial(s, tail), u);
    value = select(isUpper, add(value, number(kPi / 4)), value);
    value = select(isLarge, sub(number(kPi / 2), value), value);
    return copySign(value, x);
  }

  Value asin(Value x) {
    Value root = sqrt(mul(sub(number(1), x), add(number(1), x)));
    return atan(div(x, root));
  }

  Value acos(Value x) {
    Value ratio = div(sub(number(1), x), add(number(1), x));
    return mul(number(2), atan(sqrt(ratio)));
  }

  //===--- Hyperbolic functions -------------------------------------------===//

  Value sinh(Value x) {
    Value large = mul(number(0.5), sub(exp(x), exp(neg(x))));
    SmallVector<double> tail;
    double term = 1;
    for (int i = 1; i <= 7; ++i)
      tail.push_back(term /= (2 * i) * (2 * i + 1));
    Value s = mul(x, x);
    Value small = fma(mul(x, s), polynomial(s, tail), x);
    return select(compare(Compare::OLT, abs(x), number(0.5)), small, large);
  }

  Value cosh(Value x) { return mul(number(0.5), add(exp(x), exp(neg(x)))); }

  Value tanh(Value x) {
    Value a = abs(x);
    Value small = div(sinh(x), cosh(x));
    Value large =
        sub(number(1), div(number(2), add(exp(add(a, a)), number(1))));
    return select(compare(Compare::OLT, a, number(0.5)), small,
                  copySign(large, x));
  }

  Value erf(Value x) {
    // Below 2 a series without differences:
    //   2 / sqrt(pi) x exp(-x^2) (1 + 2 x^2 / 3 + (2 x^2)^2 / (3 * 5) + ...)
    Value a = abs(x), s = mul(a, a);
    SmallVector<double> series{1};
    for (int i = 1; i <= 31; ++i)
      series.push_back(series.back() * 2 / (2 * i + 1));
    Value small = mul(mul(number(2 / std::sqrt(kPi)), a),
                      mul(exp(neg(s)), polynomial(s, series)));
    // Above, the distance from 1 is exp(-x^2) / x times a function of
    // t = 9 / x^2 - 5/4, which is from -1 to 1. It was interpolated in the
    // zeros of a Chebyshev polynomial. From 6 on, nothing is left of the
    // distance.
    static constexpr double interpolated[] = {
        0x1.0ffaff540dfa4p-1,   -0x1.712dca8678da2p-6,  0x1.3efe1a870cd2fp-9,
        -0x1.91459436e8466p-12, 0x1.3ad573b0a1ac6p-14,  -0x1.1f2337248d97bp-16,
        0x1.24a262834cbf4p-18,  -0x1.44dc0f71d82c7p-20, 0x1.8295953848111p-22,
        -0x1.f135ea048d15ep-24, 0x1.4d0ad5568292ep-25,  -0x1.688595f0ce839p-27,
        0x1.d7092ea08f33bp-29,  -0x1.b6ca61d912da7p-29, 0x1.68ac4e724428cp-30};
    Value kept = select(compare(Compare::OLT, a, number(6)), a, number(6));
    Value square = mul(kept, kept);
    Value t = sub(div(number(9), square), number(1.25));
    Value apart = mul(div(exp(neg(square)), kept), polynomial(t, interpolated));
    Value value = select(compare(Compare::OLT, a, number(2)), small,
                         sub(number(1), apart));
    return select(compare(Compare::UNO, x, x), x, copySign(value, x));
  }

  Value asinh(Value x) {
    Value a = abs(x), s = mul(a, a);
    Value rest = div(s, add(number(1), sqrt(add(s, number(1)))));
    // Of a square that is not finite nothing is left but log(2 a).
    Value isLarge = compare(Compare::OGT, a, number(0x1p500));
    Value large = add(log(a), number(0x1.62e42fefa39efp-1));
    return copySign(select(isLarge, large, log1p(add(a, rest))), x);
  }

  Value acosh(Value x) {
    Value t = sub(x, number(1));
    Value root = sqrt(mul(t, add(t, number(2))));
    Value isLarge = compare(Compare::OGT, x, number(0x1p500));
    Value large = add(log(x), number(0x1.62e42fefa39efp-1));
    Value value = select(isLarge, large, log1p(add(t, root)));
    Value isBad = compare(Compare::OLT, x, number(1));
    return select(isBad, number(std::numeric_limits<double>::quiet_NaN()),
                  value);
  }

  Value atanh(Value x) {
    Value a = abs(x);
    Value ratio = div(add(a, a), sub(number(1), a));
    return copySign(mul(number(0.5), log1p(ratio)), x);
  }

  //===--- Of two operands ------------------------------------------------===//

  Value pow(Value x, Value y) {
    Value zero = number(0), one = number(1);
    Value a = abs(x);
    Value value = exp(mul(y, log(a)));
    Value half = mul(y, number(0.5));
    Value isWhole = compare(Compare::OEQ, trunc(y), y);
    Value isOdd = both(isWhole, compare(Compare::ONE, trunc(half), half));
    value = select(isOdd, copySign(value, x), value);
    Value isNone = both(compare(Compare::OLT, x, zero),
                        compare(Compare::ONE, trunc(y), y));
    isNone = both(isNone, compare(Compare::OLT, a, number(kInfinity)));
    value =
        select(isNone, number(std::numeric_limits<double>::quiet_NaN()), value);
    // 1 to whatever power, whatever to the power 0, and -1 to infinity.
    Value isOne = compare(Compare::OEQ, x, one);
    Value endless = both(compare(Compare::OEQ, a, one),
                         compare(Compare::OEQ, abs(y), number(kInfinity)));
    value = select(endless, one, value);
    value = select(isOne, one, value);
    return select(compare(Compare::OEQ, y, zero), one, value);
  }

  /// x - y * trunc(x / y), exactly, if x and y were widened from f32.
  Value rem(Value x, Value y) {
    // Long division, 28 bits of the quotient at a time: its product with the 24
    // bits of y is exact.
    Value rest = abs(x), divisor = abs(y);
    for (int digit = 9; digit >= 0; --digit) {
      Value part = mul(divisor, number(std::ldexp(1.0, 28 * digit)));
      Value quotient = trunc(div(rest, part));
      rest = fma(neg(quotient), part, rest);
      // The quotient may have been rounded up to the next integer.
      Value isBelow = compare(Compare::OLT, rest, number(0));
      rest = select(isBelow, add(rest, part), rest);
    }
    Value isEndless = compare(Compare::OEQ, divisor, number(kInfinity));
    Value isFinite = compare(Compare::OLT, abs(x), number(kInfinity));
    return select(both(isEndless, isFinite), x, copySign(rest, x));
  }

  ImplicitLocOpBuilder &b;
  const Type type;
};

class ExpandCudaFunctionsPass
    : public impl::ExpandCudaFunctionsPassBase<ExpandCudaFunctionsPass> {
public:
  using ExpandCudaFunctionsPassBase::ExpandCudaFunctionsPassBase;

private:
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<arith::RemFOp>(op) ||
          isa_and_nonnull<math::MathDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      replace(op);
  }

  static void replace(Operation *op) {
    Type type = op->getResult(0).getType(),
         element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Type wide = b.getF64Type();
    if (auto vector = dyn_cast<VectorType>(type))
      wide = vector.clone(wide);
    // Nothing is made for ops that stay: they have no code of ours.
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(
          wide == type ? operand
                       : arith::ExtFOp::create(b, wide, operand).getOut());
    Value result = DoubleMath(b, wide).expand(op, operands);
    if (!result) {
      for (Value operand : operands)
        if (Operation *made = operand.getDefiningOp(); made && wide != type)
          made->erase();
      return;
    }
    if (wide != type)
      result = arith::TruncFOp::create(b, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
};

} // namespace
} // namespace partita::codegen::cuda

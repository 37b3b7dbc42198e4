//===- ScalarEmit.cpp - Functions of one element --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/fold/ScalarEmit.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace partita::nn::scalar {

static bool isFloat(Value x) { return isa<FloatType>(x.getType()); }

bool isUnsigned(Type type) {
  return type.isUnsignedInteger() || type.isInteger(1);
}

Value constant(OpBuilder &b, Location loc, Type type, double value) {
  Type signless = getSignlessType(type);
  if (auto floatType = dyn_cast<FloatType>(signless))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(floatType, value));
  // By way of APInt: IntegerAttr wants -1 of an i1 sign-extended.
  APInt bits(64, static_cast<uint64_t>(static_cast<int64_t>(value)), true);
  return arith::ConstantOp::create(
      b, loc,
      b.getIntegerAttr(signless,
                       bits.sextOrTrunc(signless.getIntOrFloatBitWidth())));
}

static Value constantLike(OpBuilder &b, Location loc, Value x, double value) {
  return constant(b, loc, x.getType(), value);
}

static Value equals(OpBuilder &b, Location loc, Value x, double value) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x,
                               constantLike(b, loc, x, value));
}

static Value select(OpBuilder &b, Location loc, Value c, Value x, Value y) {
  return arith::SelectOp::create(b, loc, c, x, y);
}

Value abs(OpBuilder &b, Location loc, Value x, Type type) {
  if (isFloat(x))
    return math::AbsFOp::create(b, loc, x);
  if (isUnsigned(type))
    return x;
  return math::AbsIOp::create(b, loc, x);
}

Value neg(OpBuilder &b, Location loc, Value x) {
  if (isFloat(x))
    return arith::NegFOp::create(b, loc, x);
  return arith::SubIOp::create(b, loc, constantLike(b, loc, x, 0), x);
}

Value relu(OpBuilder &b, Location loc, Value x, Type type) {
  return max(b, loc, x, constantLike(b, loc, x, 0), type);
}

Value sign(OpBuilder &b, Location loc, Value x, Type type) {
  Value zero = constantLike(b, loc, x, 0);
  Value isPositive = compare(b, loc, ComparePredicate::gt, x, zero, type);
  Value isNegative = compare(b, loc, ComparePredicate::lt, x, zero, type);
  // What is neither is zero or NaN, and stays.
  Value rest = isUnsigned(type)
                   ? x
                   : select(b, loc, isNegative, constantLike(b, loc, x, -1), x);
  return select(b, loc, isPositive, constantLike(b, loc, x, 1), rest);
}

Value bitNot(OpBuilder &b, Location loc, Value x) {
  return arith::XOrIOp::create(b, loc, x, constantLike(b, loc, x, -1));
}

Value logistic(OpBuilder &b, Location loc, Value x) {
  Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
  Value one = constantLike(b, loc, x, 1);
  return arith::DivFOp::create(b, loc, one,
                               arith::AddFOp::create(b, loc, e, one));
}

Value reciprocal(OpBuilder &b, Location loc, Value x) {
  return arith::DivFOp::create(b, loc, constantLike(b, loc, x, 1), x);
}

Value rsqrt(OpBuilder &b, Location loc, Value x) {
  return reciprocal(b, loc, math::SqrtOp::create(b, loc, x));
}

Value add(OpBuilder &b, Location loc, Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(b, loc, x, y);
  return arith::AddIOp::create(b, loc, x, y);
}

Value sub(OpBuilder &b, Location loc, Value x, Value y) {
  if (isFloat(x))
    return arith::SubFOp::create(b, loc, x, y);
  return arith::SubIOp::create(b, loc, x, y);
}

Value mul(OpBuilder &b, Location loc, Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(b, loc, x, y);
  return arith::MulIOp::create(b, loc, x, y);
}

Value div(OpBuilder &b, Location loc, Value x, Value y, Type type) {
  if (isFloat(x))
    return arith::DivFOp::create(b, loc, x, y);
  Value zero = constantLike(b, loc, x, 0), one = constantLike(b, loc, x, 1);
  Value isZero = equals(b, loc, y, 0);
  if (isUnsigned(type)) {
    Value quotient =
        arith::DivUIOp::create(b, loc, x, select(b, loc, isZero, one, y));
    return select(b, loc, isZero, zero, quotient);
  }
  Value isMinusOne = equals(b, loc, y, -1);
  Value traps = arith::OrIOp::create(b, loc, isZero, isMinusOne);
  Value quotient =
      arith::DivSIOp::create(b, loc, x, select(b, loc, traps, one, y));
  quotient = select(b, loc, isMinusOne, neg(b, loc, x), quotient);
  return select(b, loc, isZero, zero, quotient);
}

Value rem(OpBuilder &b, Location loc, Value x, Value y, Type type) {
  if (isFloat(x))
    return arith::RemFOp::create(b, loc, x, y);
  // The remainder by 1 is the 0 that we want for 0 and for -1.
  Value one = constantLike(b, loc, x, 1);
  Value isZero = equals(b, loc, y, 0);
  if (isUnsigned(type))
    return arith::RemUIOp::create(b, loc, x, select(b, loc, isZero, one, y));
  Value traps = arith::OrIOp::create(b, loc, isZero, equals(b, loc, y, -1));
  return arith::RemSIOp::create(b, loc, x, select(b, loc, traps, one, y));
}

/// By repeated squaring, unrolled over the bits of the exponent.
static Value integerPower(OpBuilder &b, Location loc, Value x, Value y) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  Value one = constantLike(b, loc, x, 1);
  Value power = one, square = x;
  for (unsigned bit = 0; bit < width; ++bit) {
    Value mask = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(x.getType(), APInt::getOneBitSet(width, bit)));
    Value isClear = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq,
        arith::AndIOp::create(b, loc, y, mask), constantLike(b, loc, x, 0));
    power = select(b, loc, isClear, power,
                   arith::MulIOp::create(b, loc, power, square));
    if (bit + 1 < width)
      square = arith::MulIOp::create(b, loc, square, square);
  }
  return power;
}

Value pow(OpBuilder &b, Location loc, Value x, Value y, Type type) {
  if (isFloat(x))
    return math::PowFOp::create(b, loc, x, y);
  Value power = integerPower(b, loc, x, y);
  if (isUnsigned(type))
    return power;
  // 1 / x^-y is a whole number for 1 and -1 only, for which the power above is
  // right: it looks at the lowest bit of y alone.
  Value zero = constantLike(b, loc, x, 0);
  Value isUnit =
      arith::OrIOp::create(b, loc, equals(b, loc, x, 1), equals(b, loc, x, -1));
  Value isNegative =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, y, zero);
  return select(b, loc, isNegative, select(b, loc, isUnit, power, zero), power);
}

Value max(OpBuilder &b, Location loc, Value x, Value y, Type type) {
  if (isFloat(x))
    return arith::MaximumFOp::create(b, loc, x, y);
  if (isUnsigned(type))
    return arith::MaxUIOp::create(b, loc, x, y);
  return arith::MaxSIOp::create(b, loc, x, y);
}

Value min(OpBuilder &b, Location loc, Value x, Value y, Type type) {
  if (isFloat(x))
    return arith::MinimumFOp::create(b, loc, x, y);
  if (isUnsigned(type))
    return arith::MinUIOp::create(b, loc, x, y);
  return arith::MinSIOp::create(b, loc, x, y);
}

Value combine(OpBuilder &b, Location loc, ReduceKind kind, Value x, Value y,
              Type type) {
  switch (kind) {
  case ReduceKind::sum:
    return add(b, loc, x, y);
  case ReduceKind::prod:
    return mul(b, loc, x, y);
  case ReduceKind::max:
    return max(b, loc, x, y, type);
  case ReduceKind::min:
    return min(b, loc, x, y, type);
  }
  llvm_unreachable("every kind is listed");
}

/// `shifted(y)`, or 0 where y, unsigned, is not below the width of x.
static Value guardShift(OpBuilder &b, Location loc, Value x, Value y,
                        llvm::function_ref<Value(Value)> shifted) {
  Value zero = constantLike(b, loc, x, 0);
  Value width = constantLike(b, loc, x, x.getType().getIntOrFloatBitWidth());
  Value fits =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, y, width);
  return select(b, loc, fits, shifted(select(b, loc, fits, y, zero)), zero);
}

Value shiftLeft(OpBuilder &b, Location loc, Value x, Value y) {
  return guardShift(b, loc, x, y, [&](Value by) -> Value {
    return arith::ShLIOp::create(b, loc, x, by);
  });
}

Value shiftRight(OpBuilder &b, Location loc, Value x, Value y) {
  return guardShift(b, loc, x, y, [&](Value by) -> Value {
    return arith::ShRUIOp::create(b, loc, x, by);
  });
}

Value bitcast(OpBuilder &b, Location loc, Value x, Type to) {
  Type signless = getSignlessType(to);
  if (x.getType() == signless)
    return x;
  return arith::BitcastOp::create(b, loc, signless, x);
}

namespace {
/// A comparison of floats, of signed and of unsigned integers.
struct Predicates {
  arith::CmpFPredicate ofFloats;
  arith::CmpIPredicate ofSigned, ofUnsigned;
};
} // namespace

static Predicates getPredicates(ComparePredicate predicate) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  switch (predicate) {
  case ComparePredicate::eq:
    return {F::OEQ, I::eq, I::eq};
  case ComparePredicate::ne:
    return {F::UNE, I::ne, I::ne};
  case ComparePredicate::lt:
    return {F::OLT, I::slt, I::ult};
  case ComparePredicate::le:
    return {F::OLE, I::sle, I::ule};
  case ComparePredicate::gt:
    return {F::OGT, I::sgt, I::ugt};
  case ComparePredicate::ge:
    return {F::OGE, I::sge, I::uge};
  }
  llvm_unreachable("every predicate is listed");
}

Value compare(OpBuilder &b, Location loc, ComparePredicate predicate, Value x,
              Value y, Type type) {
  const Predicates is = getPredicates(predicate);
  if (isFloat(x))
    return arith::CmpFOp::create(b, loc, is.ofFloats, x, y);
  return arith::CmpIOp::create(
      b, loc, isUnsigned(type) ? is.ofUnsigned : is.ofSigned, x, y);
}

} // namespace partita::nn::scalar

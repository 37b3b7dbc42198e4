//===- SmallFloat.cpp - Floats of eight bits and less ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/fold/SmallFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;

namespace partita::nn {

using NaN = SmallFloatFormat::NaN;

std::optional<SmallFloatFormat> getSmallFloatFormat(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return SmallFloatFormat{4, 3, 7, NaN::allOnes, 0x7e};
  if (isa<Float8E4M3FNUZType>(type))
    return SmallFloatFormat{4, 3, 8, NaN::negativeZero, 0x7f};
  if (isa<Float8E5M2Type>(type))
    return SmallFloatFormat{5, 2, 15, NaN::ieee, 0x7b};
  if (isa<Float8E5M2FNUZType>(type))
    return SmallFloatFormat{5, 2, 16, NaN::negativeZero, 0x7f};
  if (isa<Float8E8M0FNUType>(type))
    return SmallFloatFormat{8, 0, 127, NaN::allOnes, 0xfe, /*hasSign=*/false};
  if (isa<Float4E2M1FNType>(type))
    return SmallFloatFormat{2, 1, 1, NaN::none, 0x7};
  return std::nullopt;
}

namespace {

/// Short names for the few ops that the conversions are made of.
struct Bits {
  OpBuilder &b;
  Location loc;

  Value i32(int64_t v) {
    return arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(v)));
  }
  Value f32(double v) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(v));
  }
  Value bits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  Value asFloat(Value x) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), x);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value bitAnd(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value bitOr(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value shl(Value x, int n) { return arith::ShLIOp::create(b, loc, x, i32(n)); }
  Value shr(Value x, int n) {
    return arith::ShRUIOp::create(b, loc, x, i32(n));
  }
  Value cmp(arith::CmpIPredicate p, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, p, x, y);
  }
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, loc, c, x, y);
  }
};

constexpr int kF32Bias = 127;
constexpr int kF32MantissaBits = 23;
constexpr int64_t kF32Infinity = 0x7f800000;
constexpr int64_t kF32NaN = 0x7fc00000;

Value decodeExponentOnly(Bits &e, Value code) {
  // 2^-127 is subnormal in f32.
  Value isLowest = e.cmp(arith::CmpIPredicate::eq, code, e.i32(0));
  Value isNaN = e.cmp(arith::CmpIPredicate::eq, code, e.i32(0xff));
  Value bits = e.shl(code, kF32MantissaBits);
  bits = e.select(isLowest, e.i32(0x00400000), bits);
  return e.asFloat(e.select(isNaN, e.i32(kF32NaN), bits));
}

Value encodeExponentOnly(Bits &e, Value bits, bool saturate) {
  Value nan = e.i32(0xff);
  Value code = e.shr(e.add(bits, e.i32(0x7fffff)), kF32MantissaBits);
  Value overflows = e.cmp(arith::CmpIPredicate::ugt, code, e.i32(0xfe));
  code = e.select(overflows, saturate ? e.i32(0xfe) : nan, code);
  // Negative values, and NaN, have no code.
  Value isBad = e.cmp(arith::CmpIPredicate::ugt, bits, e.i32(kF32Infinity));
  return e.select(isBad, nan, code);
}

} // namespace

Value emitSmallFloatToF32(OpBuilder &b, Location loc, Value codeByte,
                          const SmallFloatFormat &f) {
  Bits e{b, loc};
  Value code = arith::ExtUIOp::create(b, loc, b.getI32Type(), codeByte);
  if (!f.hasSign)
    return decodeExponentOnly(e, code);

  int signShift = f.exponentBits + f.mantissaBits;
  Value magnitude = e.bitAnd(code, e.i32((1 << signShift) - 1));
  Value sign = e.shl(e.bitAnd(e.shr(code, signShift), e.i32(1)), 31);

  Value normal = e.add(e.shl(magnitude, kF32MantissaBits - f.mantissaBits),
                       e.i32(int64_t(kF32Bias - f.bias) << kF32MantissaBits));
  Value units = arith::SIToFPOp::create(b, loc, b.getF32Type(), magnitude);
  Value subnormal = e.bits(arith::MulFOp::create(
      b, loc, units, e.f32(std::ldexp(1.0, 1 - f.bias - f.mantissaBits))));
  Value isSubnormal =
      e.cmp(arith::CmpIPredicate::ult, magnitude, e.i32(1 << f.mantissaBits));
  Value bits = e.select(isSubnormal, subnormal, normal);

  if (f.nan == NaN::ieee) {
    Value infinity = e.i32(f.maxCode + 1);
    Value isInf = e.cmp(arith::CmpIPredicate::eq, magnitude, infinity);
    Value isNaN = e.cmp(arith::CmpIPredicate::ugt, magnitude, infinity);
    bits = e.select(isInf, e.i32(kF32Infinity), bits);
    bits = e.select(isNaN, e.i32(kF32NaN), bits);
  } else if (f.nan == NaN::allOnes) {
    Value isNaN = e.cmp(arith::CmpIPredicate::ugt, magnitude, e.i32(f.maxCode));
    bits = e.select(isNaN, e.i32(kF32NaN), bits);
  } else if (f.nan == NaN::negativeZero) {
    Value isNaN = e.cmp(arith::CmpIPredicate::eq, code, e.i32(1 << signShift));
    bits = e.select(isNaN, e.i32(kF32NaN), bits);
  }
  return e.asFloat(e.bitOr(bits, sign));
}

Value emitF32ToSmallFloat(OpBuilder &b, Location loc, Value x,
                          const SmallFloatFormat &f, bool saturate) {
  Bits e{b, loc};
  Value bits = e.bits(x);
  auto toByte = [&](Value code) -> Value {
    return arith::TruncIOp::create(b, loc, b.getI8Type(), code);
  };
  if (!f.hasSign)
    return toByte(encodeExponentOnly(e, bits, saturate));

  int signShift = f.exponentBits + f.mantissaBits;
  int dropped = kF32MantissaBits - f.mantissaBits;
  Value magnitude = e.bitAnd(bits, e.i32(0x7fffffff));
  Value sign = e.shl(e.shr(bits, 31), signShift);

  // Rounds to even on the integer; a carry moves into the exponent, rightly.
  Value isOdd = e.bitAnd(e.shr(magnitude, dropped), e.i32(1));
  Value rounded =
      e.add(magnitude, e.add(isOdd, e.i32((1 << (dropped - 1)) - 1)));
  Value normal = e.shr(
      e.sub(rounded, e.i32(int64_t(kF32Bias - f.bias) << kF32MantissaBits)),
      dropped);

  // Adding a number whose last bit weighs as much as the smallest subnormal
  // makes the floating-point unit do the rounding.
  Value magic =
      e.f32(std::ldexp(1.0, 1 - f.bias - f.mantissaBits + kF32MantissaBits));
  Value shifted = arith::AddFOp::create(b, loc, e.asFloat(magnitude), magic);
  Value subnormal = e.sub(e.bits(shifted), e.bits(magic));
  Value isSubnormal =
      e.cmp(arith::CmpIPredicate::ult, magnitude,
            e.i32(int64_t(kF32Bias - f.bias + 1) << kF32MantissaBits));
  Value code = e.select(isSubnormal, subnormal, normal);

  bool isUnsignedZero = f.nan == NaN::negativeZero;
  int nanCode = isUnsignedZero || f.nan == NaN::none ? 1 << signShift
                                                     : (1 << signShift) - 1;
  int overflowCode = saturate || f.nan == NaN::none ? f.maxCode
                     : f.nan == NaN::ieee           ? f.maxCode + 1
                                                    : nanCode;
  Value overflows = e.cmp(arith::CmpIPredicate::ugt, code, e.i32(f.maxCode));
  code = e.select(overflows, e.i32(overflowCode), code);

  Value isNaN =
      e.cmp(arith::CmpIPredicate::ugt, magnitude, e.i32(kF32Infinity));
  code = e.select(isNaN, e.i32(nanCode), code);
  if (isUnsignedZero) {
    Value isZero = e.cmp(arith::CmpIPredicate::eq, code, e.i32(0));
    return toByte(e.select(isZero, code, e.bitOr(code, sign)));
  }
  // A format without NaN has no sign to give to one.
  if (f.nan == NaN::none)
    sign = e.select(isNaN, e.i32(0), sign);
  return toByte(e.bitOr(code, sign));
}

} // namespace partita::nn

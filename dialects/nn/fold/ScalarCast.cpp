//===- ScalarCast.cpp - Conversion of one element -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ScalarEmit.h"
#include "dialects/nn/fold/SmallFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace partita::nn::scalar {

static Value floatToFloat(OpBuilder &b, Location loc, Value x, Type to) {
  unsigned fromBits = x.getType().getIntOrFloatBitWidth();
  unsigned toBits = to.getIntOrFloatBitWidth();
  if (x.getType() == to)
    return x;
  if (fromBits < toBits)
    return arith::ExtFOp::create(b, loc, to, x);
  if (fromBits > toBits)
    return arith::TruncFOp::create(b, loc, to, x);
  // f16 and bf16: neither holds the other.
  Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  return arith::TruncFOp::create(b, loc, to, wide);
}

/// Keeps the low bits of a byte that holds a narrower integer.
static Value wrapToWidth(OpBuilder &b, Location loc, Value byte, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  unsigned unused = byte.getType().getIntOrFloatBitWidth() - width;
  if (unused == 0)
    return byte;
  if (isUnsigned(to))
    return arith::AndIOp::create(
        b, loc, byte, constant(b, loc, byte.getType(), (1 << width) - 1));
  Value shift = constant(b, loc, byte.getType(), unused);
  return arith::ShRSIOp::create(
      b, loc, arith::ShLIOp::create(b, loc, byte, shift), shift);
}

static Value integerToInteger(OpBuilder &b, Location loc, Value x, Type from,
                              Type to) {
  Type storage = getSignlessType(to);
  unsigned fromBits = x.getType().getIntOrFloatBitWidth();
  unsigned toBits = storage.getIntOrFloatBitWidth();
  if (fromBits < toBits)
    x = isUnsigned(from) ? arith::ExtUIOp::create(b, loc, storage, x).getOut()
                         : arith::ExtSIOp::create(b, loc, storage, x).getOut();
  else if (fromBits > toBits)
    x = arith::TruncIOp::create(b, loc, storage, x);
  return wrapToWidth(b, loc, x, to);
}

/// By signed conversions alone: an unsigned one gives NaN and negative numbers
/// other bits with AVX-512 than without.
static Value floatToU64(OpBuilder &b, Location loc, Value x) {
  auto toFloat = cast<FloatType>(x.getType());
  Type integer = b.getI64Type();
  Value half = constant(b, loc, toFloat, std::ldexp(1.0, 63));
  Value isLarge =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, half);
  Value zero = constant(b, loc, toFloat, 0);
  Value offset = arith::SelectOp::create(b, loc, isLarge, half, zero);
  Value low = arith::FPToSIOp::create(b, loc, integer,
                                      arith::SubFOp::create(b, loc, x, offset));
  Value top = arith::SelectOp::create(
      b, loc, isLarge,
      arith::ConstantOp::create(
          b, loc, b.getI64IntegerAttr(std::numeric_limits<int64_t>::min())),
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0)));
  return arith::XOrIOp::create(b, loc, low, top);
}

static Value floatToInteger(OpBuilder &b, Location loc, Value x, Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  if (isUnsigned(to) && width == 64)
    return floatToU64(b, loc, x);
  // By way of a wider type, so that what exceeds a narrow one wraps around, as
  // it does in C on common processors, instead of being undefined.
  bool fits = width <= 16 || (width == 32 && !isUnsigned(to));
  Type wide = fits ? b.getI32Type() : b.getI64Type();
  Value integer = arith::FPToSIOp::create(b, loc, wide, x);
  return integerToInteger(b, loc, integer, wide, to);
}

Value cast(OpBuilder &b, Location loc, Value x, Type from, Type to,
           bool saturate) {
  if (from == to)
    return x;
  if (std::optional<SmallFloatFormat> format = getSmallFloatFormat(from)) {
    Value decoded = emitSmallFloatToF32(b, loc, x, *format);
    return cast(b, loc, decoded, b.getF32Type(), to, saturate);
  }
  if (std::optional<SmallFloatFormat> format = getSmallFloatFormat(to)) {
    Value wide = cast(b, loc, x, from, b.getF32Type(), saturate);
    return emitF32ToSmallFloat(b, loc, wide, *format, saturate);
  }
  if (to.isInteger(1)) {
    Value zero = constant(b, loc, from, 0);
    return compare(b, loc, ComparePredicate::ne, x, zero, from);
  }
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  if (fromFloat && toFloat)
    return floatToFloat(b, loc, x, to);
  if (fromFloat)
    return floatToInteger(b, loc, x, to);
  if (!toFloat)
    return integerToInteger(b, loc, x, from, to);
  if (isUnsigned(from))
    return arith::UIToFPOp::create(b, loc, to, x);
  return arith::SIToFPOp::create(b, loc, to, x);
}

} // namespace partita::nn::scalar

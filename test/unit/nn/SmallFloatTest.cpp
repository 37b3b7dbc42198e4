//===- SmallFloatTest.cpp - Conversions against APFloat -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emitted conversions, evaluated by folding, must agree with LLVM's
// APFloat: for every code, and for values at, between and beside all codes.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/fold/SmallFloat.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace partita::nn;

namespace {

class SmallFloatTest : public testing::Test {
protected:
  SmallFloatTest() {
    context.loadDialect<NNDialect, arith::ArithDialect, math::MathDialect>();
  }

  std::vector<FloatType> types() {
    return {Float8E4M3FNType::get(&context),  Float8E4M3FNUZType::get(&context),
            Float8E5M2Type::get(&context),    Float8E5M2FNUZType::get(&context),
            Float8E8M0FNUType::get(&context), Float4E2M1FNType::get(&context)};
  }

  ScalarFunction makeCast(Type from, Type to, bool saturate) {
    return ScalarFunction(UnknownLoc::get(&context), {from},
                          [&](OpBuilder &b, Location loc, ValueRange x) {
                            return scalar::cast(b, loc, x[0], from, to,
                                                saturate);
                          });
  }

  float decode(ScalarFunction &function, unsigned code) {
    Builder b(&context);
    Attribute value =
        function.evaluate({b.getIntegerAttr(b.getI8Type(), APInt(8, code))});
    return cast<FloatAttr>(value).getValue().convertToFloat();
  }

  unsigned encode(ScalarFunction &function, float value) {
    Builder b(&context);
    Attribute code = function.evaluate({b.getF32FloatAttr(value)});
    return cast<IntegerAttr>(code).getValue().getZExtValue();
  }

  MLIRContext context;
};

float toFloat(FloatType type, unsigned code) {
  APFloat value(type.getFloatSemantics(), APInt(type.getWidth(), code));
  // Its NaN has no mantissa that a conversion could keep.
  if (value.isNaN())
    return NAN;
  bool losesInfo;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToFloat();
}

TEST_F(SmallFloatTest, DecodesEveryCode) {
  for (FloatType type : types()) {
    ScalarFunction decoder = makeCast(type, Float32Type::get(&context), true);
    for (unsigned code = 0; code < 1u << type.getWidth(); ++code) {
      float expected = toFloat(type, code), actual = decode(decoder, code);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(actual)) << code;
      else
        EXPECT_EQ(actual, expected) << code;
    }
  }
}

TEST_F(SmallFloatTest, EncodesEveryValueAndWhatLiesBetween) {
  for (FloatType type : types()) {
    // APFloat rounds f8E8M0FNU to nearest, we round it up.
    if (isa<Float8E8M0FNUType>(type))
      continue;
    unsigned maxCode = getSmallFloatFormat(type)->maxCode;
    ScalarFunction encoder = makeCast(Float32Type::get(&context), type, true);
    for (unsigned code = 0; code < maxCode; ++code) {
      float low = toFloat(type, code), high = toFloat(type, code + 1);
      float middle = (low + high) / 2;
      EXPECT_EQ(encode(encoder, low), code);
      EXPECT_EQ(encode(encoder, std::nextafter(middle, low)), code);
      EXPECT_EQ(encode(encoder, std::nextafter(middle, high)), code + 1);
      EXPECT_EQ(encode(encoder, middle), code % 2 ? code + 1 : code);
      unsigned sign = 1u << (type.getWidth() - 1);
      EXPECT_EQ(encode(encoder, -high), (code + 1) | sign);
    }
  }
}

TEST_F(SmallFloatTest, BeyondTheRange) {
  Type f32 = Float32Type::get(&context);
  auto code = [&](Type type, float value, bool saturate) {
    ScalarFunction encoder = makeCast(f32, type, saturate);
    return encode(encoder, value);
  };
  float inf = INFINITY;
  Type fn = Float8E4M3FNType::get(&context);
  EXPECT_EQ(code(fn, 1e9f, true), 0x7eu);
  EXPECT_EQ(code(fn, -inf, true), 0xfeu);
  EXPECT_EQ(code(fn, 1e9f, false), 0x7fu);
  EXPECT_EQ(code(fn, NAN, true) & 0x7f, 0x7fu);
  EXPECT_EQ(code(fn, -0.0f, true), 0x80u);
  Type fnuz = Float8E5M2FNUZType::get(&context);
  EXPECT_EQ(code(fnuz, inf, true), 0x7fu);
  EXPECT_EQ(code(fnuz, 1e9f, false), 0x80u);
  EXPECT_EQ(code(fnuz, NAN, true), 0x80u);
  EXPECT_EQ(code(fnuz, -0.0f, true), 0u);
  Type ieee = Float8E5M2Type::get(&context);
  EXPECT_EQ(code(ieee, inf, true), 0x7bu);
  EXPECT_EQ(code(ieee, -inf, false), 0xfcu);
  Type four = Float4E2M1FNType::get(&context);
  EXPECT_EQ(code(four, -100.0f, false), 0xfu);
  EXPECT_EQ(code(four, NAN, true), 0x8u);
  EXPECT_EQ(code(four, -NAN, true), 0x8u);
}

TEST_F(SmallFloatTest, ExponentsRoundUp) {
  Type f32 = Float32Type::get(&context);
  Type type = Float8E8M0FNUType::get(&context);
  ScalarFunction saturating = makeCast(f32, type, true);
  EXPECT_EQ(encode(saturating, 1.0f), 127u);
  EXPECT_EQ(encode(saturating, 1.25f), 128u);
  EXPECT_EQ(encode(saturating, 3e38f), 254u);
  EXPECT_EQ(encode(saturating, INFINITY), 254u);
  EXPECT_EQ(encode(saturating, NAN), 255u);
  ScalarFunction strict = makeCast(f32, type, false);
  EXPECT_EQ(encode(strict, 3e38f), 255u);
}

} // namespace

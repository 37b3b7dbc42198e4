//===- FloatTest.cpp - Floating-point arithmetic --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"
#include "tests/SoftFloat.h"

#include <bit>
#include <cmath>

using namespace gpuemu::test;

namespace {

class FloatTest : public EmulatorTest {};

std::string registerOf(const std::string &type) {
  return type == "f16" || type == "bf16" ? "b16"
         : type == "f32"                 ? "b32"
                                         : "b64";
}

/// Equal, or both NaN: in double precision the bits of a NaN are open.
bool same(const Format &f, uint64_t a, uint64_t b) {
  return a == b || (f.bits() == 64 && isNan(f, a) && isNan(f, b));
}

uint64_t saturated(const Format &f, uint64_t bits) {
  uint64_t one = uint64_t((1 << (f.exponent - 1)) - 1) << f.fraction;
  if (isNan(f, bits) || (bits & f.sign()))
    return 0;
  return std::min(bits, one);
}

using Reference = uint64_t (*)(const Format &, const std::string &rounding,
                               uint64_t a, uint64_t b, uint64_t c);

/// Holds an instruction to its definition. `modifiers`: .ftz and .sat.
void compare(const std::string &name, const std::string &rounding,
             const std::string &modifiers, const std::string &type,
             unsigned sources, Reference reference, unsigned random = 6) {
  const Format &f = formatNamed(type);
  bool flushes = modifiers.find("ftz") != std::string::npos;
  bool saturates = modifiers.find("sat") != std::string::npos;
  std::vector<uint64_t> values = interesting(f, random);
  std::vector<std::vector<uint64_t>> operands;
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = 0; j < (sources > 1 ? values.size() : 1); ++j) {
      operands.push_back({values[i]});
      if (sources > 1)
        operands.back().push_back(values[j]);
      if (sources > 2)
        operands.back().push_back(values[(i * 31 + j * 17) % values.size()]);
    }
  std::vector<std::string> types(sources + 1, registerOf(type));
  std::string instruction = name + "." + rounding + modifiers + "." + type +
                            (sources == 1   ? " %d, %a"
                             : sources == 2 ? " %d, %a, %b"
                                            : " %d, %a, %b, %c");
  std::vector<uint64_t> results = runInstruction(instruction, types, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::vector<uint64_t> row = operands[i];
    row.resize(3);
    if (flushes)
      for (uint64_t &value : row)
        value = flushed(f, value);
    uint64_t expected = reference(f, rounding, row[0], row[1], row[2]);
    if (flushes)
      expected = flushed(f, expected);
    if (saturates)
      expected = saturated(f, expected);
    ASSERT_TRUE(same(f, results[i], expected))
        << instruction << std::hex << " of " << row[0] << ", " << row[1] << ", "
        << row[2] << ": " << results[i] << " and not " << expected;
  }
}

uint64_t sum(const Format &f, const std::string &rounding, uint64_t a,
             uint64_t b, uint64_t) {
  return add(f, rounding, a, b);
}
uint64_t difference(const Format &f, const std::string &rounding, uint64_t a,
                    uint64_t b, uint64_t) {
  return add(f, rounding, a, isNan(f, b) ? b : b ^ f.sign());
}
uint64_t product(const Format &f, const std::string &rounding, uint64_t a,
                 uint64_t b, uint64_t) {
  return multiply(f, rounding, a, b);
}
uint64_t fused(const Format &f, const std::string &rounding, uint64_t a,
               uint64_t b, uint64_t c) {
  return gpuemu::test::fma(f, rounding, a, b, c);
}
uint64_t quotient(const Format &f, const std::string &rounding, uint64_t a,
                  uint64_t b, uint64_t) {
  return divide(f, rounding, a, b);
}
uint64_t root(const Format &f, const std::string &rounding, uint64_t a,
              uint64_t, uint64_t) {
  return squareRoot(f, rounding, a);
}
uint64_t reciprocal(const Format &f, const std::string &rounding, uint64_t a,
                    uint64_t, uint64_t) {
  uint64_t one = uint64_t((1 << (f.exponent - 1)) - 1) << f.fraction;
  return divide(f, rounding, one, a);
}

TEST_F(FloatTest, ArithmeticRoundsOnceInEachDirection) {
  for (std::string type : {"f32", "f64"})
    for (std::string rounding : {"rn", "rz", "rm", "rp"}) {
      compare("add", rounding, "", type, 2, sum);
      compare("sub", rounding, "", type, 2, difference);
      compare("mul", rounding, "", type, 2, product);
      compare("fma", rounding, "", type, 3, fused);
      compare("div", rounding, "", type, 2, quotient);
      compare("sqrt", rounding, "", type, 1, root, 300);
      compare("rcp", rounding, "", type, 1, reciprocal, 300);
    }
}

TEST_F(FloatTest, FlushingAndSaturation) {
  for (std::string modifiers : {".ftz", ".sat", ".ftz.sat"})
    for (std::string rounding : {"rn", "rz"}) {
      compare("add", rounding, modifiers, "f32", 2, sum);
      compare("mul", rounding, modifiers, "f32", 2, product);
      compare("fma", rounding, modifiers, "f32", 3, fused);
    }
  compare("div", "rn", ".ftz", "f32", 2, quotient);
  compare("sqrt", "rn", ".ftz", "f32", 1, root, 300);
  for (std::string modifiers : {".ftz", ".sat", ".ftz.sat"}) {
    compare("add", "rn", modifiers, "f16", 2, sum);
    compare("fma", "rn", modifiers, "f16", 3, fused);
  }
}

TEST_F(FloatTest, NarrowArithmeticRoundsOnce) {
  for (std::string type : {"f16", "bf16"}) {
    compare("add", "rn", "", type, 2, sum, 20);
    compare("sub", "rn", "", type, 2, difference, 20);
    compare("mul", "rn", "", type, 2, product, 20);
    compare("fma", "rn", "", type, 3, fused, 40);
  }
}

/// min and max of two numbers, as the manual says it.
uint64_t extreme(const Format &f, uint64_t a, uint64_t b, bool isMaximum,
                 bool keepsNan) {
  if (isNan(f, a) && isNan(f, b))
    return f.nan;
  if (isNan(f, a) || isNan(f, b))
    return keepsNan ? f.nan : isNan(f, a) ? b : a;
  // Ordered as integers, -0 before +0.
  auto key = [&](uint64_t bits) {
    return bits & f.sign() ? -int64_t(bits & ~f.sign()) - 1
                           : int64_t(bits & ~f.sign());
  };
  return (key(a) < key(b)) != isMaximum ? a : b;
}

TEST_F(FloatTest, ExtremesOrderZerosAndPassOverNan) {
  for (std::string type : {"f32", "f64", "f16", "bf16"})
    for (bool isMaximum : {false, true})
      for (std::string nan : {"", ".NaN"}) {
        if (type == "f64" && !nan.empty())
          continue;
        const Format &f = formatNamed(type);
        std::vector<std::vector<uint64_t>> operands;
        for (uint64_t a : interesting(f, 3))
          for (uint64_t b : interesting(f, 3))
            operands.push_back({a, b});
        std::string r = registerOf(type);
        std::string instruction =
            (isMaximum ? "max" : "min") + nan + "." + type + " %d, %a, %b";
        std::vector<uint64_t> results =
            runInstruction(instruction, {r, r, r}, operands);
        for (size_t i = 0; i < operands.size(); ++i)
          ASSERT_TRUE(same(f, results[i],
                           extreme(f, operands[i][0], operands[i][1], isMaximum,
                                   !nan.empty())))
              << instruction << std::hex << " of " << operands[i][0] << ", "
              << operands[i][1] << ": " << results[i];
      }
}

TEST_F(FloatTest, SignsChangeBitsAlone) {
  const std::vector<std::string> b16 = {"b16", "b16"}, b32 = {"b32", "b32"},
                                 b64 = {"b64", "b64"};
  runCases({
      {"neg.f32 %d, %a", b32, {0x7fc00001}, 0xffc00001},
      {"neg.f32 %d, %a", b32, {0}, 0x80000000},
      {"neg.ftz.f32 %d, %a", b32, {1}, 0x80000000},
      {"abs.f32 %d, %a", b32, {0xff800000}, 0x7f800000},
      {"abs.ftz.f32 %d, %a", b32, {0x80000001}, 0},
      {"neg.f64 %d, %a", b64, {uint64_t(1) << 63}, 0},
      {"abs.f64 %d, %a", b64, {~uint64_t(0)}, ~uint64_t(0) >> 1},
      {"neg.f16 %d, %a", b16, {0x3c00}, 0xbc00},
      {"abs.bf16 %d, %a", b16, {0xbf80}, 0x3f80},
      {"neg.f16x2 %d, %a", b32, {0x3c00bc00}, 0xbc003c00},
      {"neg.bf16x2 %d, %a", b32, {0x3f800000}, 0xbf808000},
      {"abs.ftz.f16x2 %d, %a", b32, {0x8001bc00}, 0x00003c00},
      {"copysign.f32 %d, %a, %b",
       {"b32", "b32", "b32"},
       {0x80000000, 0x3f800000},
       0xbf800000},
      {"copysign.f64 %d, %a, %b",
       {"b64", "b64", "b64"},
       {0, 0xbff0000000000000},
       0x3ff0000000000000},
      {"testp.subnormal.f32 %d, %a", {"pred", "b32"}, {1}, 1},
      {"testp.normal.f32 %d, %a", {"pred", "b32"}, {1}, 0},
      {"testp.finite.f32 %d, %a", {"pred", "b32"}, {0x7f800000}, 0},
      {"testp.notanumber.f64 %d, %a", {"pred", "b64"}, {~uint64_t(0)}, 1},
  });
}

TEST_F(FloatTest, PairsAreComputedByThemselves) {
  const std::vector<std::string> three = {"b32", "b32", "b32"},
                                 four = {"b32", "b32", "b32", "b32"};
  runCases({
      // 1 + 2, -1 + 1; 65504 + 65504 is infinite.
      {"add.f16x2 %d, %a, %b", three, {0x3c00bc00, 0x40003c00}, 0x42000000},
      {"add.rn.f16x2 %d, %a, %b", three, {0x7bff3c00, 0x7bff3c00}, 0x7c004000},
      {"mul.bf16x2 %d, %a, %b", three, {0x40003f80, 0x4040bf80}, 0x40c0bf80},
      {"sub.bf16x2 %d, %a, %b", three, {0x3f800000, 0x3f800000}, 0},
      {"fma.rn.f16x2 %d, %a, %b, %c",
       four,
       {0x3c004000, 0x40004000, 0xc0003c00},
       0x00004500},
      {"fma.rn.relu.f16x2 %d, %a, %b, %c",
       four,
       {0x3c00bc00, 0x3c003c00, 0},
       0x3c000000},
      {"max.f16x2 %d, %a, %b", three, {0x7e003c00, 0x40004000}, 0x40004000},
      {"max.NaN.f16x2 %d, %a, %b", three, {0x7e003c00, 0x40004000}, 0x7fff4000},
      {"min.bf16x2 %d, %a, %b", three, {0x80003f80, 0x00004000}, 0x80003f80},
  });
  const uint64_t one = 0x3f800000, three32 = 0x40400000;
  runCases({
      {"add.rn.f32x2 %d, %a, %b",
       {"b64", "b64", "b64"},
       {one << 32 | three32, one << 32 | one},
       uint64_t(0x40000000) << 32 | 0x40800000},
      {"fma.rn.f32x2 %d, %a, %b, %c",
       {"b64", "b64", "b64", "b64"},
       {one << 32 | three32, one << 32 | three32, 0},
       one << 32 | 0x41100000},
      {"mul.rz.ftz.f32x2 %d, %a, %b",
       {"b64", "b64", "b64"},
       {uint64_t(1) << 32 | 0x3f800001, one << 32 | 0x3f800001},
       0x3f800002},
  });
}

TEST_F(FloatTest, SumsOfNarrowAndWide) {
  // 1.0 (f16) + 2^-24 rounds to even, and up with .rp.
  runCases({
      {"add.f32.f16 %d, %a, %b",
       {"b32", "b16", "b32"},
       {0x3c00, 0x33800000},
       0x3f800000},
      {"add.rp.f32.f16 %d, %a, %b",
       {"b32", "b16", "b32"},
       {0x3c00, 0x33800000},
       0x3f800001},
      {"sub.rn.f32.bf16 %d, %a, %b",
       {"b32", "b16", "b32"},
       {0x4040, 0x3f800000},
       0x40000000},
      {"fma.rn.f32.f16 %d, %a, %b, %c",
       {"b32", "b16", "b16", "b32"},
       {0x4000, 0x4200, 0x3f800000},
       0x40e00000},
      {"fma.rn.sat.f32.bf16 %d, %a, %b, %c",
       {"b32", "b16", "b16", "b32"},
       {0x4000, 0x4040, 0x3f800000},
       0x3f800000},
  });
}

TEST_F(FloatTest, ApproximateFunctionsAreRoundedOnce) {
  auto bits = [](double value) {
    return uint64_t(std::bit_cast<uint32_t>(float(value)));
  };
  const std::vector<std::string> b32 = {"b32", "b32"};
  std::vector<Case> cases = {
      {"ex2.approx.f32 %d, %a", b32, {bits(INFINITY)}, bits(INFINITY)},
      {"ex2.approx.f32 %d, %a", b32, {bits(-INFINITY)}, 0},
      {"ex2.approx.f32 %d, %a", b32, {bits(3)}, bits(8)},
      {"ex2.approx.ftz.f32 %d, %a", b32, {bits(-140)}, 0},
      {"ex2.approx.f32 %d, %a", b32, {bits(-140)}, bits(std::ldexp(1, -140))},
      {"lg2.approx.f32 %d, %a", b32, {bits(0)}, bits(-INFINITY)},
      {"lg2.approx.f32 %d, %a", b32, {bits(-1)}, 0x7fffffff},
      {"lg2.approx.f32 %d, %a", b32, {bits(32)}, bits(5)},
      {"rsqrt.approx.f32 %d, %a", b32, {bits(0.25)}, bits(2)},
      {"rsqrt.approx.f32 %d, %a", b32, {bits(0)}, bits(INFINITY)},
      {"rsqrt.approx.f32 %d, %a", b32, {bits(-1)}, 0x7fffffff},
      {"rcp.approx.f32 %d, %a", b32, {bits(-INFINITY)}, 0x80000000},
      {"rcp.approx.ftz.f32 %d, %a", b32, {1}, bits(INFINITY)},
      {"sqrt.approx.f32 %d, %a", b32, {bits(9)}, bits(3)},
      {"sin.approx.f32 %d, %a", b32, {bits(0)}, 0},
      {"cos.approx.f32 %d, %a", b32, {bits(0)}, bits(1)},
      {"sin.approx.f32 %d, %a", b32, {bits(INFINITY)}, 0x7fffffff},
      {"tanh.approx.f32 %d, %a", b32, {bits(100)}, bits(1)},
      {"div.approx.f32 %d, %a, %b",
       {"b32", "b32", "b32"},
       {bits(1), bits(3)},
       bits(1.0 / 3)},
      {"div.full.f32 %d, %a, %b",
       {"b32", "b32", "b32"},
       {bits(-6), bits(3)},
       bits(-2)},
      {"ex2.approx.f16 %d, %a", {"b16", "b16"}, {0x4200}, 0x4800},
      {"ex2.approx.ftz.bf16x2 %d, %a", b32, {0x3f800000}, 0x40003f80},
      {"tanh.approx.f16x2 %d, %a", b32, {0x00004900}, 0x00003c00},
  };
  for (double x : {0.1, 0.7, 1.5, 2.75, 10.0}) {
    auto a = double(float(x));
    cases.push_back({"ex2.approx.f32 %d, %a", b32, {bits(x)}, bits(exp2(a))});
    cases.push_back({"lg2.approx.f32 %d, %a", b32, {bits(x)}, bits(log2(a))});
    cases.push_back({"sin.approx.f32 %d, %a", b32, {bits(x)}, bits(sin(a))});
    cases.push_back({"tanh.approx.f32 %d, %a", b32, {bits(x)}, bits(tanh(a))});
  }
  runCases(cases);
}

} // namespace

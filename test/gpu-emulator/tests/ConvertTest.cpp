//===- ConvertTest.cpp - Conversions and comparisons ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"
#include "tests/SoftFloat.h"

#include <algorithm>

using namespace gpuemu::test;

namespace {

class ConvertTest : public EmulatorTest {};

struct Integer {
  const char *type;
  unsigned bits;
  bool isSigned;
  __int128 least() const { return isSigned ? -(__int128(1) << (bits - 1)) : 0; }
  __int128 most() const {
    return (__int128(1) << (isSigned ? bits - 1 : bits)) - 1;
  }
  uint64_t kept(__int128 value) const {
    return uint64_t(value) &
           (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
  }
  __int128 value(uint64_t stored) const {
    uint64_t low = kept(__int128(stored));
    bool negative = isSigned && low >> (bits - 1) & 1;
    return __int128(low) - (negative ? __int128(1) << bits : 0);
  }
  /// Registers have 16 bits or more.
  unsigned registerBits() const { return std::max(bits, 16u); }
  std::string reg() const { return "b" + std::to_string(registerBits()); }
  /// What a register holds of a value: extended as the type says.
  uint64_t stored(__int128 value) const {
    return Integer{"", registerBits(), false}.kept(this->value(kept(value)));
  }
};
const Integer integers[] = {{"u8", 8, false},   {"s8", 8, true},
                            {"u16", 16, false}, {"s16", 16, true},
                            {"u32", 32, false}, {"s32", 32, true},
                            {"u64", 64, false}, {"s64", 64, true}};

const char *const floats[] = {"f16", "bf16", "f32", "f64"};
std::string registerOf(const std::string &type) {
  return "b" + std::to_string(formatNamed(type).bits());
}

std::vector<uint64_t> valuesOf(const Integer &type) {
  std::vector<uint64_t> values;
  for (__int128 each :
       {__int128(0), __int128(1), __int128(-1), type.least(), type.most(),
        type.most() - 1, __int128(2049), __int128(257), __int128(16777217),
        (__int128(1) << 53) + 1, (__int128(1) << 62) + (__int128(1) << 38) + 1,
        (__int128(1) << 62) + (__int128(1) << 54) + 1,
        (__int128(1) << 62) + (__int128(1) << 54)})
    values.push_back(type.stored(each));
  return values;
}

TEST_F(ConvertTest, IntegersToIntegers) {
  for (const Integer &from : integers)
    for (const Integer &to : integers)
      for (std::string sat : {"", ".sat"}) {
        // Where nothing can be out of range, PTX has no .sat.
        if (!sat.empty() && to.least() <= from.least() &&
            from.most() <= to.most())
          continue;
        std::vector<std::vector<uint64_t>> operands;
        for (uint64_t value : valuesOf(from))
          operands.push_back({value});
        std::string instruction =
            "cvt" + sat + "." + to.type + "." + from.type + " %d, %a";
        std::vector<uint64_t> results =
            runInstruction(instruction, {to.reg(), from.reg()}, operands);
        for (size_t i = 0; i < operands.size(); ++i) {
          __int128 value = from.value(operands[i][0]);
          if (!sat.empty())
            value = std::clamp(value, to.least(), to.most());
          ASSERT_EQ(results[i], to.stored(value))
              << instruction << " of " << operands[i][0];
        }
      }
}

TEST_F(ConvertTest, IntegersToFloats) {
  for (const Integer &from : integers)
    for (std::string to : floats)
      for (std::string rounding : {"rn", "rz", "rm", "rp"}) {
        if (to == "bf16" && from.bits == 8)
          continue;
        std::vector<std::vector<uint64_t>> operands;
        for (uint64_t value : valuesOf(from))
          operands.push_back({value});
        std::string instruction =
            "cvt." + rounding + "." + to + "." + from.type + " %d, %a";
        std::vector<uint64_t> results =
            runInstruction(instruction, {registerOf(to), from.reg()}, operands);
        for (size_t i = 0; i < operands.size(); ++i) {
          __int128 value = from.value(operands[i][0]);
          uint64_t expected = fromInteger(formatNamed(to), rounding, value < 0,
                                          uint64_t(value < 0 ? -value : value));
          ASSERT_EQ(results[i], expected)
              << instruction << " of " << operands[i][0];
        }
      }
}

TEST_F(ConvertTest, FloatsToIntegers) {
  for (std::string from : floats)
    for (const Integer &to : integers)
      for (std::string rounding : {"rni", "rzi", "rmi", "rpi"}) {
        if (from == "bf16" && to.bits == 8)
          continue;
        std::vector<std::vector<uint64_t>> operands;
        for (uint64_t value : interesting(formatNamed(from), 60))
          operands.push_back({value});
        std::string instruction =
            "cvt." + rounding + "." + to.type + "." + from + " %d, %a";
        std::vector<uint64_t> results =
            runInstruction(instruction, {to.reg(), registerOf(from)}, operands);
        for (size_t i = 0; i < operands.size(); ++i)
          ASSERT_EQ(results[i],
                    to.stored(toInteger(formatNamed(from), rounding,
                                        operands[i][0], to.least(), to.most())))
              << instruction << " of " << operands[i][0];
      }
}

void compareFloats(const std::string &instruction, const std::string &from,
                   const std::string &to, const std::string &rounding) {
  std::vector<std::vector<uint64_t>> operands;
  for (uint64_t value : interesting(formatNamed(from), 300))
    operands.push_back({value});
  std::vector<uint64_t> results =
      runInstruction(instruction, {registerOf(to), registerOf(from)}, operands);
  const Format &f = formatNamed(to);
  for (size_t i = 0; i < operands.size(); ++i) {
    uint64_t expected = convert(f, rounding, formatNamed(from), operands[i][0]);
    // The bits of a NaN in double precision are open, and a bf16 is the upper
    // half of a float.
    bool anyNan = to == "f64" || (from == "bf16" && to == "f32");
    bool same = results[i] == expected ||
                (anyNan && isNan(f, results[i]) && isNan(f, expected));
    ASSERT_TRUE(same) << instruction << std::hex << " of " << operands[i][0]
                      << ": " << results[i] << " and not " << expected;
  }
}

TEST_F(ConvertTest, FloatsToFloats) {
  struct {
    const char *from, *to;
  } narrowing[] = {{"f64", "f32"}, {"f64", "f16"},  {"f64", "bf16"},
                   {"f32", "f16"}, {"f32", "bf16"}, {"bf16", "f16"},
                   {"f16", "bf16"}};
  for (auto [from, to] : narrowing)
    for (std::string rounding : {"rn", "rz", "rm", "rp"})
      compareFloats("cvt." + rounding + "." + to + "." + from + " %d, %a", from,
                    to, rounding);
  for (auto [from, to] : {std::pair("f16", "f32"), std::pair("bf16", "f32"),
                          std::pair("f16", "f64"), std::pair("bf16", "f64"),
                          std::pair("f32", "f64")})
    compareFloats(std::string("cvt.") + to + "." + from + " %d, %a", from, to,
                  "rn");
}

TEST_F(ConvertTest, ModifiersOfConversions) {
  const std::vector<std::string> b32 = {"b32", "b32"},
                                 pair = {"b32", "b32", "b32"};
  const uint64_t one = 0x3f800000, half32 = 0x3f000000, minus = 0xbf800000,
                 large = 0x7f000000;
  runCases({
      // Rounded to an integer, and still a float.
      {"cvt.rni.f32.f32 %d, %a", b32, {0x40200000}, 0x40000000}, // 2.5
      {"cvt.rni.f32.f32 %d, %a", b32, {0xbf000000}, 0x80000000}, // -0.5
      {"cvt.rpi.f32.f32 %d, %a", b32, {0x3e800000}, one},        // 0.25
      {"cvt.rmi.f32.f32 %d, %a", b32, {0xbe800000}, minus},      // -0.25
      {"cvt.rzi.f32.f32 %d, %a", b32, {0xbff00000}, minus},      // -1.875
      {"cvt.sat.f32.f32 %d, %a", b32, {0x40000000}, one},
      {"cvt.ftz.f32.f32 %d, %a", b32, {0x80000001}, 0x80000000},
      {"cvt.rzi.ftz.s32.f32 %d, %a", b32, {1}, 0},
      {"cvt.rpi.s32.f32 %d, %a", b32, {1}, 1},
      {"cvt.rpi.ftz.s32.f32 %d, %a", b32, {1}, 0},
      {"cvt.sat.f32.f16 %d, %a", {"b32", "b16"}, {0xc000}, 0},
      // The first operand is the high half.
      {"cvt.rn.f16x2.f32 %d, %a, %b", pair, {one, half32}, 0x3c003800},
      {"cvt.rn.bf16x2.f32 %d, %a, %b", pair, {minus, one}, 0xbf803f80},
      {"cvt.rn.relu.f16x2.f32 %d, %a, %b", pair, {minus, one}, 0x00003c00},
      {"cvt.rn.satfinite.f16x2.f32 %d, %a, %b", pair, {large, one}, 0x7bff3c00},
      {"cvt.rn.f16x2.f32 %d, %a, %b", pair, {large, one}, 0x7c003c00},
      {"cvt.rz.bf16x2.f32 %d, %a, %b",
       pair,
       {0x3fffffff, 0xbfffffff},
       0x3fffbfff},
      {"cvt.rn.bf16x2.f32 %d, %a, %b", pair, {0x7f800001, one}, 0x7fff3f80},
      {"cvt.rna.tf32.f32 %d, %a", b32, {0x3f801000}, 0x3f802000},
      {"cvt.rn.tf32.f32 %d, %a", b32, {0x3f801000}, 0x3f800000},
      {"cvt.rn.tf32.f32 %d, %a", b32, {0x3f803000}, 0x3f804000},
      {"cvt.rz.tf32.f32 %d, %a", b32, {0xbf803fff}, 0xbf802000},
      // Registers may be wider than the types.
      {"cvt.u32.u16 %d, %a", b32, {0x12345678}, 0x5678},
      {"cvt.s32.s8 %d, %a", b32, {0x180}, 0xffffff80},
      {"cvt.s16.s8 %d, %a", b32, {0x80}, 0xffffff80},
  });
}

/// The relation, as the manual defines it.
bool holds(const std::string &name, bool unordered, int order) {
  if (name == "num" || name == "nan")
    return (name == "nan") == unordered;
  bool withNan = name.size() == 3;
  if (unordered)
    return withNan;
  std::string base = name.substr(0, 2);
  return base == "eq"   ? order == 0
         : base == "ne" ? order != 0
         : base == "lt" ? order < 0
         : base == "le" ? order <= 0
         : base == "gt" ? order > 0
                        : order >= 0;
}

TEST_F(ConvertTest, ComparisonsOfFloats) {
  for (std::string type : floats)
    for (std::string name : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu",
                             "ltu", "leu", "gtu", "geu", "num", "nan"}) {
      const Format &f = formatNamed(type);
      std::vector<std::vector<uint64_t>> operands;
      for (uint64_t a : interesting(f, 2))
        for (uint64_t b : interesting(f, 2))
          operands.push_back({a, b});
      std::string r = registerOf(type);
      std::string instruction = "setp." + name + "." + type + " %d, %a, %b";
      std::vector<uint64_t> results =
          runInstruction(instruction, {"pred", r, r}, operands);
      for (size_t i = 0; i < operands.size(); ++i) {
        auto key = [&](uint64_t bits) {
          auto magnitude = int64_t(bits & ~f.sign());
          return bits & f.sign() ? -magnitude : magnitude;
        };
        int64_t a = key(operands[i][0]), b = key(operands[i][1]);
        bool unordered = isNan(f, operands[i][0]) || isNan(f, operands[i][1]);
        ASSERT_EQ(results[i], holds(name, unordered, a < b ? -1 : a > b))
            << instruction << std::hex << " of " << operands[i][0] << ", "
            << operands[i][1];
      }
    }
}

TEST_F(ConvertTest, ComparisonsOfIntegers) {
  for (const Integer &type : integers) {
    if (type.bits < 16)
      continue;
    std::vector<std::vector<uint64_t>> operands;
    for (uint64_t a : valuesOf(type))
      for (uint64_t b : valuesOf(type))
        operands.push_back({a, b});
    std::vector<std::pair<std::string, std::string>> names = {
        {"eq", "eq"}, {"ne", "ne"}, {"lt", "lt"},
        {"le", "le"}, {"gt", "gt"}, {"ge", "ge"}};
    if (!type.isSigned)
      for (auto extra : {std::pair("lo", "lt"), std::pair("ls", "le"),
                         std::pair("hi", "gt"), std::pair("hs", "ge")})
        names.emplace_back(extra);
    for (const auto &[name, meaning] : names) {
      std::vector<uint64_t> results =
          runInstruction("setp." + name + "." + type.type + " %d, %a, %b",
                         {"pred", type.reg(), type.reg()}, operands);
      for (size_t i = 0; i < operands.size(); ++i) {
        __int128 a = type.value(operands[i][0]), b = type.value(operands[i][1]);
        ASSERT_EQ(results[i], holds(meaning, false, a < b ? -1 : a > b))
            << name;
      }
    }
  }
}

TEST_F(ConvertTest, ComparisonsCombineWithPredicates) {
  const std::vector<std::string> types = {"pred", "b32", "b32", "pred"};
  for (uint64_t c : {0, 1})
    for (uint64_t a : {1, 2})
      runCases({
          {"setp.eq.and.s32 %d, %a, %b, %c", types, {a, 1, c}, (a == 1) & c},
          {"setp.eq.or.s32 %d, %a, %b, %c", types, {a, 1, c}, (a == 1) | c},
          {"setp.eq.xor.s32 %d, %a, %b, %c", types, {a, 1, c}, (a == 1) ^ c},
          {"setp.eq.and.s32 %d, %a, %b, !%c",
           types,
           {a, 1, c},
           (a == 1) & (c ^ 1)},
          // The other result: the negated relation, with the same operation.
          {"{ .reg .pred %q; setp.eq.and.s32 %q|%d, %a, %b, %c; }",
           types,
           {a, 1, c},
           (a != 1) & c},
          {"{ .reg .pred %q; setp.lt.f16x2 %q|%d, %a, %b; }",
           {"pred", "b32", "b32"},
           {0x3c004000, 0x40003c00},
           1},
          {"setp.lt.ftz.f32 %d, %a, %b", {"pred", "b32", "b32"}, {0, 1}, 0},
          {"setp.lt.f32 %d, %a, %b", {"pred", "b32", "b32"}, {0, 1}, 1},
          {"set.lt.u32.s32 %d, %a, %b",
           {"b32", "b32", "b32"},
           {a, 2},
           a < 2 ? 0xffffffff : 0},
          {"set.gt.f32.f32 %d, %a, %b",
           {"b32", "b32", "b32"},
           {0x40000000, 0x3f800000},
           0x3f800000},
      });
}

} // namespace

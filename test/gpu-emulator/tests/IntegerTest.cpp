//===- IntegerTest.cpp - Instructions of integers and bits ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

#include <random>

using namespace gpuemu::test;

namespace {

class IntegerTest : public EmulatorTest {};

using Wide = __int128;

/// Reads a value as its type says.
Wide valueOf(const std::string &type, uint64_t bits) {
  unsigned size = unsigned(std::stoul(type.substr(1)));
  uint64_t kept = size == 64 ? bits : bits & ((uint64_t(1) << size) - 1);
  if (type[0] == 's' && kept >> (size - 1) & 1)
    return Wide(kept) - (Wide(1) << size);
  return Wide(kept);
}
uint64_t bitsOf(const std::string &type, Wide value) {
  unsigned size = unsigned(std::stoul(type.substr(1)));
  return uint64_t(value) &
         (size == 64 ? ~uint64_t(0) : (uint64_t(1) << size) - 1);
}
std::string registerOf(const std::string &type) { return "b" + type.substr(1); }

std::vector<uint64_t> interesting(const std::string &type) {
  unsigned size = unsigned(std::stoul(type.substr(1)));
  uint64_t top = uint64_t(1) << (size - 1);
  std::vector<uint64_t> values = {
      0,      1, 2, 3, 7, 31, top - 1, top, top + 1, ~uint64_t(0), ~uint64_t(1),
      top / 3};
  std::mt19937_64 generator(size);
  for (int i = 0; i < 8; ++i)
    values.push_back(generator());
  for (uint64_t &value : values)
    value = bitsOf("u" + std::to_string(size), Wide(value));
  return values;
}

using Reference = Wide (*)(Wide a, Wide b, Wide c, unsigned bits);

/// Holds an instruction with types `.T` to a function of exact integers.
void compare(const std::string &instruction, const std::string &type,
             unsigned sources, Reference reference,
             const std::string &resultType = "") {
  std::string result = resultType.empty() ? type : resultType;
  std::vector<uint64_t> values = interesting(type);
  std::vector<std::vector<uint64_t>> operands;
  for (uint64_t a : values)
    for (uint64_t b : sources > 1 ? values : std::vector<uint64_t>{0}) {
      operands.push_back({a});
      if (sources > 1)
        operands.back().push_back(b);
      if (sources > 2)
        operands.back().push_back(bitsOf(result, Wide(a * 7 + b)));
    }
  std::vector<std::string> types = {registerOf(result)};
  for (unsigned i = 0; i < sources; ++i)
    types.push_back(registerOf(i == 2 ? result : type));
  std::vector<uint64_t> results = runInstruction(instruction, types, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto &row = operands[i];
    Wide b = sources > 1 ? valueOf(type, row[1]) : 0;
    Wide c = sources > 2 ? valueOf(result, row[2]) : 0;
    uint64_t expected =
        bitsOf(result, reference(valueOf(type, row[0]), b, c,
                                 unsigned(std::stoul(type.substr(1)))));
    ASSERT_EQ(results[i], expected)
        << instruction << " of " << row[0] << ", " << (sources > 1 ? row[1] : 0)
        << ", " << (sources > 2 ? row[2] : 0);
  }
}

const char *const all[] = {"u16", "u32", "u64", "s16", "s32", "s64"};

TEST_F(IntegerTest, SumsProductsAndExtremesWrap) {
  for (std::string t : all) {
    compare("add." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a + b; });
    compare("sub." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a - b; });
    compare("mul.lo." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a * b; });
    compare("mad.lo." + t + " %d, %a, %b, %c", t, 3,
            [](Wide a, Wide b, Wide c, unsigned) { return a * b + c; });
    compare("min." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a < b ? a : b; });
    compare("max." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a < b ? b : a; });
    compare("sad." + t + " %d, %a, %b, %c", t, 3,
            [](Wide a, Wide b, Wide c, unsigned) {
              return c + (a < b ? b - a : a - b);
            });
  }
}

TEST_F(IntegerTest, HighHalvesOfProducts) {
  for (std::string t : {"u16", "u32", "s16", "s32", "s64"}) {
    compare("mul.hi." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned bits) { return a * b >> bits; });
    compare("mad.hi." + t + " %d, %a, %b, %c", t, 3,
            [](Wide a, Wide b, Wide c, unsigned bits) {
              return (a * b >> bits) + c;
            });
  }
  // The product of two u64 does not fit into a signed number of 128 bits.
  compare("mul.hi.u64 %d, %a, %b", "u64", 2,
          [](Wide a, Wide b, Wide, unsigned) {
            return Wide((unsigned __int128)(a) * (unsigned __int128)(b) >> 64);
          });
}

TEST_F(IntegerTest, ProductsTwiceAsWide) {
  struct {
    std::string type, wide;
  } pairs[] = {{"u16", "u32"}, {"s16", "s32"}, {"u32", "u64"}, {"s32", "s64"}};
  for (const auto &[type, wide] : pairs) {
    compare(
        "mul.wide." + type + " %d, %a, %b", type, 2,
        [](Wide a, Wide b, Wide, unsigned) { return a * b; }, wide);
    compare(
        "mad.wide." + type + " %d, %a, %b, %c", type, 3,
        [](Wide a, Wide b, Wide c, unsigned) { return a * b + c; }, wide);
  }
}

TEST_F(IntegerTest, DivisionTruncatesAndByZeroGivesOnes) {
  for (std::string t : all) {
    compare("div." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return b ? a / b : -1; });
    compare("rem." + t + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return b ? a % b : a; });
  }
}

TEST_F(IntegerTest, SignsAndSaturation) {
  for (std::string t : {"s16", "s32", "s64"}) {
    compare("neg." + t + " %d, %a", t, 1,
            [](Wide a, Wide, Wide, unsigned) { return -a; });
    compare("abs." + t + " %d, %a", t, 1,
            [](Wide a, Wide, Wide, unsigned) { return a < 0 ? -a : a; });
  }
  auto clamp = [](Wide value) {
    return value > INT32_MAX   ? Wide(INT32_MAX)
           : value < INT32_MIN ? Wide(INT32_MIN)
                               : value;
  };
  static auto limited = clamp;
  compare("add.sat.s32 %d, %a, %b", "s32", 2,
          [](Wide a, Wide b, Wide, unsigned) { return limited(a + b); });
  compare("sub.sat.s32 %d, %a, %b", "s32", 2,
          [](Wide a, Wide b, Wide, unsigned) { return limited(a - b); });
  compare("mad.hi.sat.s32 %d, %a, %b, %c", "s32", 3,
          [](Wide a, Wide b, Wide c, unsigned) {
            return limited((a * b >> 32) + c);
          });
  compare("max.relu.s32 %d, %a, %b", "s32", 2,
          [](Wide a, Wide b, Wide, unsigned) {
            return std::max(std::max(a, b), Wide(0));
          });
}

TEST_F(IntegerTest, LogicAndShifts) {
  for (std::string t : {"u16", "u32", "u64"}) {
    std::string b = registerOf(t);
    compare("and." + b + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a & b; });
    compare("or." + b + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a | b; });
    compare("xor." + b + " %d, %a, %b", t, 2,
            [](Wide a, Wide b, Wide, unsigned) { return a ^ b; });
    compare("not." + b + " %d, %a", t, 1,
            [](Wide a, Wide, Wide, unsigned) { return ~a; });
    compare("cnot." + b + " %d, %a", t, 1,
            [](Wide a, Wide, Wide, unsigned) { return Wide(a == 0); });
  }
  // The amount is an u32, and one that is too large shifts everything out.
  for (std::string t : all) {
    unsigned bits = unsigned(std::stoul(t.substr(1)));
    std::vector<std::vector<uint64_t>> operands;
    for (uint64_t a : interesting(t))
      for (uint64_t by : {0u, 1u, 15u, 16u, 31u, 32u, 63u, 64u, 255u, 1u << 31})
        operands.push_back({a, by});
    std::vector<uint64_t> right =
        runInstruction("shr." + t + " %d, %a, %b",
                       {registerOf(t), registerOf(t), "b32"}, operands);
    std::vector<uint64_t> left =
        runInstruction("shl." + registerOf(t) + " %d, %a, %b",
                       {registerOf(t), registerOf(t), "b32"}, operands);
    for (size_t i = 0; i < operands.size(); ++i) {
      Wide a = valueOf(t, operands[i][0]);
      uint64_t by = operands[i][1];
      EXPECT_EQ(left[i], by >= bits ? 0 : bitsOf(t, a << by));
      EXPECT_EQ(right[i], bitsOf(t, a >> std::min<uint64_t>(by, 100)));
    }
  }
}

TEST_F(IntegerTest, BitFields) {
  // bfe and bfi bit by bit, as the manual defines them.
  for (std::string t : {"u32", "s32", "u64", "s64"}) {
    unsigned bits = unsigned(std::stoul(t.substr(1)));
    std::vector<std::vector<uint64_t>> extractions, insertions;
    for (uint64_t a : interesting(t))
      for (uint64_t position :
           {0u, 1u, 5u, 31u, 32u, 60u, 63u, 64u, 200u, 257u})
        for (uint64_t length : {0u, 1u, 8u, 31u, 32u, 40u, 64u, 255u}) {
          extractions.push_back({a, position, length});
          insertions.push_back(
              {a, bitsOf(t, Wide(a * 0x9e3779b97f4a7c15)), position, length});
        }
    std::string r = registerOf(t);
    std::vector<uint64_t> extracted = runInstruction(
        "bfe." + t + " %d, %a, %b, %c", {r, r, "b32", "b32"}, extractions);
    std::vector<uint64_t> inserted =
        runInstruction("bfi." + r + " %d, %a, %b, %c, %e",
                       {r, r, r, "b32", "b32"}, insertions);
    for (size_t i = 0; i < extractions.size(); ++i) {
      uint64_t a = extractions[i][0], field = 0, whole = insertions[i][1];
      unsigned position = extractions[i][1] & 255;
      unsigned length = extractions[i][2] & 255;
      bool sign = t[0] == 's' && length != 0 &&
                  a >> std::min(position + length - 1, bits - 1) & 1;
      for (unsigned j = 0; j < bits; ++j) {
        bool inside = j < length && position + j < bits;
        field |= uint64_t(inside ? a >> (position + j) & 1 : sign) << j;
        if (inside) {
          whole &= ~(uint64_t(1) << (position + j));
          whole |= (a >> j & 1) << (position + j);
        }
      }
      ASSERT_EQ(extracted[i], field) << t << " " << position << " " << length;
      ASSERT_EQ(inserted[i], whole) << t << " " << position << " " << length;
    }
  }
}

TEST_F(IntegerTest, Counts) {
  for (std::string t : {"u32", "u64"}) {
    std::string b = registerOf(t);
    static auto ones = [](Wide a) {
      int count = 0;
      for (int i = 0; i < 64; ++i)
        count += int(a >> i & 1);
      return count;
    };
    static auto highest = [](Wide a) {
      for (int i = 63; i >= 0; --i)
        if (a >> i & 1)
          return i;
      return -1;
    };
    compare(
        "popc." + b + " %d, %a", t, 1,
        [](Wide a, Wide, Wide, unsigned) { return Wide(ones(a)); }, "u32");
    compare(
        "clz." + b + " %d, %a", t, 1,
        [](Wide a, Wide, Wide, unsigned bits) {
          return Wide(int(bits) - 1 - highest(a));
        },
        "u32");
    compare(
        "bfind." + t + " %d, %a", t, 1,
        [](Wide a, Wide, Wide, unsigned) { return Wide(highest(a)); }, "u32");
    compare("brev." + b + " %d, %a", t, 1,
            [](Wide a, Wide, Wide, unsigned bits) {
              Wide result = 0;
              for (unsigned i = 0; i < bits; ++i)
                result |= (a >> i & 1) << (bits - 1 - i);
              return result;
            });
  }
  runCases({
      {"bfind.s32 %d, %a", {"b32", "b32"}, {0xffffffff}, 0xffffffff},
      {"bfind.s32 %d, %a", {"b32", "b32"}, {0xfffffffe}, 0},
      {"bfind.s32 %d, %a", {"b32", "b32"}, {0x80000000}, 30},
      {"bfind.shiftamt.u32 %d, %a", {"b32", "b32"}, {1}, 31},
      {"bfind.shiftamt.u32 %d, %a", {"b32", "b32"}, {0}, 0xffffffff},
  });
}

TEST_F(IntegerTest, PermutationsAndFunnels) {
  const std::vector<std::string> words = {"b32", "b32", "b32", "b32"};
  const uint64_t a = 0x83020100, b = 0x07f60504;
  runCases({
      {"prmt.b32 %d, %a, %b, %c", words, {a, b, 0x3210}, a},
      {"prmt.b32 %d, %a, %b, %c", words, {a, b, 0x7654}, b},
      {"prmt.b32 %d, %a, %b, %c", words, {a, b, 0x0246}, 0x000204f6},
      // The fourth bit of a selector replicates the sign.
      {"prmt.b32 %d, %a, %b, %c", words, {a, b, 0xeb30}, 0xffff8300},
      {"prmt.b32 %d, %a, %b, %c", words, {a, b, 0x8888}, 0},
      {"prmt.b32.f4e %d, %a, %b, %c", words, {a, b, 1}, 0x04830201},
      {"prmt.b32.b4e %d, %a, %b, %c", words, {a, b, 1}, 0xf6070001},
      {"prmt.b32.rc8 %d, %a, %b, %c", words, {a, b, 2}, 0x02020202},
      {"prmt.b32.ecl %d, %a, %b, %c", words, {a, b, 1}, 0x83020101},
      {"prmt.b32.ecr %d, %a, %b, %c", words, {a, b, 1}, 0x01010100},
      {"prmt.b32.rc16 %d, %a, %b, %c", words, {a, b, 1}, 0x83028302},
      {"shf.l.wrap.b32 %d, %a, %b, %c", words, {0x80000001, 2, 1}, 5},
      {"shf.l.wrap.b32 %d, %a, %b, %c", words, {0x80000001, 2, 33}, 5},
      {"shf.l.clamp.b32 %d, %a, %b, %c",
       words,
       {0x80000001, 2, 33},
       0x80000001},
      {"shf.l.clamp.b32 %d, %a, %b, %c", words, {0x80000001, 2, 0}, 2},
      {"shf.r.wrap.b32 %d, %a, %b, %c", words, {0x80000001, 3, 1}, 0xc0000000},
      {"shf.r.wrap.b32 %d, %a, %b, %c", words, {0x80000001, 3, 32}, 0x80000001},
      {"shf.r.clamp.b32 %d, %a, %b, %c", words, {0x80000001, 3, 32}, 3},
      {"shf.r.clamp.b32 %d, %a, %b, %c", words, {0x80000001, 3, 99}, 3},
      {"lop3.b32 %d, %a, %b, %c, 0xe8", words, {0xcc, 0xaa, 0xf0}, 0xe8},
      {"lop3.b32 %d, %a, %b, %c, 0x96", words, {0xff, 0x0f, 0x33}, 0xc3},
      {"dp4a.s32.s32 %d, %a, %b, %c",
       words,
       {0x01ff0203, 0x02ff0405, 100},
       126},
      {"dp4a.u32.u32 %d, %a, %b, %c",
       words,
       {0xff000000, 0xff000001, 1},
       65026},
      {"add.u16x2 %d, %a, %b",
       {"b32", "b32", "b32"},
       {0xffff0001, 0x00010001},
       2},
      {"min.s16x2 %d, %a, %b",
       {"b32", "b32", "b32"},
       {0xffff0001, 0x00010002},
       0xffff0001},
      {"max.relu.s16x2 %d, %a, %b",
       {"b32", "b32", "b32"},
       {0xffff0001, 0xfffe0002},
       2},
  });
}

TEST_F(IntegerTest, CarriesGoFromOneInstructionToTheNext) {
  // 128 bits: (%p0)[0..1] + [2..3], then the difference, then a product.
  Buffer buffer(std::vector<uint64_t>{~uint64_t(0), 5, 1, 7, 0, 0, 0, 0, 0, 0});
  std::string text = kernelText(
      1, "  .reg .b64 %r<20>;\n  .reg .b32 %s<9>;",
      "  ld.global.v2.u64 {%r0, %r1}, [%p0];\n"
      "  ld.global.v2.u64 {%r2, %r3}, [%p0+16];\n"
      "  add.cc.u64 %r4, %r0, %r2;\n  addc.u64 %r5, %r1, %r3;\n"
      "  st.global.v2.u64 [%p0+32], {%r4, %r5};\n"
      "  sub.cc.u64 %r6, %r2, %r0;\n  subc.u64 %r7, %r3, %r1;\n"
      "  st.global.v2.u64 [%p0+48], {%r6, %r7};\n"
      "  mad.lo.cc.u64 %r8, %r0, %r0, %r0;\n  madc.hi.u64 %r9, %r0, %r0, 0;\n"
      "  st.global.v2.u64 [%p0+64], {%r8, %r9};\n");
  ASSERT_EQ(runKernel(text, buffer, 1), CUDA_SUCCESS);
  std::vector<uint64_t> out = buffer.read<uint64_t>();
  EXPECT_EQ(out[4], 0u);
  EXPECT_EQ(out[5], 13u);
  EXPECT_EQ(out[6], 2u);
  EXPECT_EQ(out[7], 1u); // 7 - 5 - 1
  // (2^64-1)^2 + (2^64-1) = 2^64 (2^64-1)
  EXPECT_EQ(out[8], 0u);
  EXPECT_EQ(out[9], ~uint64_t(0));
}

TEST_F(IntegerTest, PredicatesHaveLogicOfTheirOwn) {
  const std::vector<std::string> two = {"pred", "pred", "pred"};
  for (uint64_t a : {0, 1})
    for (uint64_t b : {0, 1})
      runCases({
          {"and.pred %d, %a, %b", two, {a, b}, a & b},
          {"or.pred %d, %a, %b", two, {a, b}, a | b},
          {"xor.pred %d, %a, %b", two, {a, b}, a ^ b},
          {"and.pred %d, !%a, %b", two, {a, b}, (a ^ 1) & b},
          {"not.pred %d, %a", {"pred", "pred"}, {a}, a ^ 1},
          {"mov.pred %d, %a", {"pred", "pred"}, {a}, a},
          {"mov.pred %d, -1", {"pred", "pred"}, {a}, 1},
          {"selp.b32 %d, 10, 20, %a", {"b32", "pred"}, {a}, a ? 10u : 20u},
      });
}

} // namespace

//===- WarpTest.cpp - Lanes that exchange values, and matrices ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"
#include "tests/SoftFloat.h"

#include <bit>
#include <random>

using namespace gpuemu::test;

namespace {

class WarpTest : public EmulatorTest {};

const char *const registers =
    "  .reg .b32 %r<40>;\n  .reg .b64 %d<9>;\n  .reg .pred %q<9>;\n"
    "  .reg .b16 %h<9>;\n";

/// One word of each lane, after `body` has put it to %r0. The lane's number is
/// in %thread and its address in %d0.
std::vector<uint32_t> wordsOf(const std::string &body, unsigned threads = 32) {
  Buffer buffer{std::vector<uint32_t>(threads)};
  std::string text = kernelText(1, registers,
                                "  mad.wide.u32 %d0, %thread, 4, %p0;\n" +
                                    body + "\n  st.global.b32 [%d0], %r0;\n");
  CUresult result = runKernel(text, buffer, threads);
  EXPECT_EQ(result, CUDA_SUCCESS) << cuEmuLastError();
  return result ? std::vector<uint32_t>(threads) : buffer.read<uint32_t>();
}

/// The source lane and whether it is in range, as the manual's code has it.
std::pair<int, bool> shuffleSource(const std::string &mode, int lane, int b,
                                   int c) {
  int segment = c >> 8 & 31, clamp = c & 31;
  int most = (lane & segment) | (clamp & ~segment), least = lane & segment, j;
  bool in = false;
  b &= 31;
  if (mode == "up") {
    j = lane - b;
    in = j >= most;
  } else if (mode == "down") {
    j = lane + b;
    in = j <= most;
  } else if (mode == "bfly") {
    j = lane ^ b;
    in = j <= most;
  } else {
    j = least | (b & ~segment);
    in = j <= most;
  }
  return {in ? j : lane, in};
}

TEST_F(WarpTest, Shuffles) {
  for (std::string mode : {"up", "down", "bfly", "idx"})
    for (int width : {32, 16, 8})
      for (int b : {0, 1, 4, 15, 31}) {
        int c = (32 - width) << 8 | (mode == "up" ? 0 : 31);
        std::vector<uint32_t> out = wordsOf(
            "  add.u32 %r1, %thread, 100;\n  shfl.sync." + mode +
            ".b32 %r2|%q0, %r1, " + std::to_string(b) + ", " +
            std::to_string(c) +
            ", -1;\n  selp.b32 %r3, 1000, 0, %q0;\n  add.u32 %r0, %r2, %r3;");
        for (int lane = 0; lane < 32; ++lane) {
          auto [from, in] = shuffleSource(mode, lane, b, c);
          EXPECT_EQ(out[size_t(lane)], uint32_t(from + 100 + (in ? 1000 : 0)))
              << mode << " " << b << " " << c << " lane " << lane;
        }
      }
}

TEST_F(WarpTest, VotesMatchesAndReductions) {
  std::string odd = "  and.b32 %r1, %thread, 1;\n  setp.eq.u32 %q0, %r1, 1;\n";
  EXPECT_EQ(wordsOf(odd + "  vote.sync.ballot.b32 %r0, %q0, -1;")[3],
            0xaaaaaaaau);
  EXPECT_EQ(wordsOf(odd + "  vote.sync.ballot.b32 %r0, !%q0, -1;")[3],
            0x55555555u);
  for (auto [mode, expected] :
       {std::pair("any", 1u), std::pair("all", 0u), std::pair("uni", 0u)})
    EXPECT_EQ(wordsOf(odd + "  vote.sync." + mode +
                      ".pred %q1, %q0, -1;\n  selp.b32 %r0, 1, 0, %q1;")[7],
              expected)
        << mode;
  EXPECT_EQ(wordsOf("  shr.b32 %r1, %thread, 3;\n"
                    "  match.any.sync.b32 %r0, %r1, -1;")[9],
            0xff00u);
  EXPECT_EQ(
      wordsOf("  mov.u32 %r1, 5;\n  match.all.sync.b32 %r2|%q0, %r1, -1;\n"
              "  selp.b32 %r0, %r2, 0, %q0;")[9],
      ~0u);
  EXPECT_EQ(wordsOf(odd + "  match.all.sync.b32 %r2|%q1, %r1, -1;\n"
                          "  selp.b32 %r0, 7, %r2, %q1;")[9],
            0u);
  struct {
    const char *operation;
    uint32_t expected;
  } reductions[] = {{"add.u32", 496 - 32 * 3},
                    {"min.s32", uint32_t(-3)},
                    {"max.s32", 28},
                    {"min.u32", 0},
                    {"and.b32", 0},
                    {"or.b32", ~0u},
                    {"xor.b32", 0}};
  for (auto [operation, expected] : reductions) {
    // tid - 3
    std::vector<uint32_t> out =
        wordsOf("  sub.s32 %r1, %thread, 3;\n  redux.sync." +
                std::string(operation) + " %r0, %r1, -1;");
    uint32_t x = 0;
    for (uint32_t i = 0; i < 32; ++i)
      x ^= i - 3;
    EXPECT_EQ(out[0], operation[0] == 'x' ? x : expected) << operation;
    EXPECT_EQ(out[31], out[0]) << operation;
  }
}

TEST_F(WarpTest, LanesOfAMaskMeetOnDifferentWays) {
  // Both halves reach the same shuffle at different times, each with its mask;
  // the whole warp meets again after.
  std::vector<uint32_t> out = wordsOf(
      "  setp.lt.u32 %q0, %thread, 16;\n  mov.u32 %r5, 0xffff0000;\n"
      "  @%q0 mov.u32 %r5, 0xffff;\n  mov.u32 %r6, %thread;\n"
      "  @%q0 bra $early;\n  add.u32 %r6, %r6, 500;\n$early:\n"
      "  shfl.sync.bfly.b32 %r1, %r6, 1, 31, %r5;\n"
      "  activemask.b32 %r2;\n  shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;\n"
      "  add.u32 %r0, %r1, %r3;");
  EXPECT_EQ(out[4], 5u + 1);
  EXPECT_EQ(out[20], 521u + 1);
}

TEST_F(WarpTest, PartsOfAWarp) {
  std::vector<uint32_t> out =
      wordsOf("  redux.sync.add.u32 %r0, %thread, -1;", 40);
  EXPECT_EQ(out[5], 496u);
  EXPECT_EQ(out[39], 32u + 33 + 34 + 35 + 36 + 37 + 38 + 39);
}

/// Factors as lanes hold them, by the manual's tables; the products in double.
struct Shape {
  std::string instruction, type;
  unsigned depth;
  bool narrowSums;
};

TEST_F(WarpTest, ProductsOfMatrices) {
  const Shape shapes[] = {
      {"m16n8k16.row.col.f32.f16.f16.f32", "f16", 16, false},
      {"m16n8k8.row.col.f32.f16.f16.f32", "f16", 8, false},
      {"m16n8k16.row.col.f16.f16.f16.f16", "f16", 16, true},
      {"m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", 16, false},
      {"m16n8k8.row.col.f32.bf16.bf16.f32", "bf16", 8, false},
      {"m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", 8, false},
      {"m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", 4, false},
  };
  for (const Shape &shape : shapes) {
    // Small integers, so that every sum is exact in any order.
    std::mt19937 random(7);
    int a[16][16], b[16][8], c[16][8];
    auto fill = [&](auto &m) {
      for (auto &row : m)
        for (int &element : row)
          element = int(random() % 9) - 4;
    };
    fill(a);
    fill(b);
    fill(c);
    bool wide = shape.type == "tf32";
    auto bits = [&](int value) {
      uint32_t single = std::bit_cast<uint32_t>(float(value));
      return wide ? single
                  : uint32_t(convert(formatNamed(shape.type), "rn",
                                     formatNamed("f32"), single));
    };
    unsigned k = shape.depth, per = wide ? 1 : 2;
    unsigned left = 16 * k / 32 / per, right = 8 * k / 32 / per;
    unsigned sums = shape.narrowSums ? 2 : 4;
    std::vector<uint32_t> words;
    for (unsigned n = 0; n < 32; ++n) {
      unsigned group = n / 4, number = n % 4;
      for (unsigned i = 0; i < left; ++i) {
        uint32_t word = 0;
        for (unsigned j = 0; j < per; ++j)
          word |=
              bits(a[group + (i % 2) * 8][number * per + j + i / 2 * 4 * per])
              << 16 * j;
        words.push_back(word);
      }
      for (unsigned i = 0; i < right; ++i) {
        uint32_t word = 0;
        for (unsigned j = 0; j < per; ++j)
          word |= bits(b[number * per + j + i * 4 * per][group]) << 16 * j;
        words.push_back(word);
      }
      for (unsigned i = 0; i < 4; ++i) {
        uint32_t value = std::bit_cast<uint32_t>(
            float(c[group + i / 2 * 8][number * 2 + i % 2]));
        if (!shape.narrowSums)
          words.push_back(value);
        else if (i % 2 == 0)
          words.push_back(uint32_t(
              convert(formatNamed("f16"), "rn", formatNamed("f32"), value)));
        else
          words.back() |= uint32_t(convert(formatNamed("f16"), "rn",
                                           formatNamed("f32"), value))
                          << 16;
      }
    }
    unsigned each = left + right + sums;
    std::string loads, lists[4];
    auto list = [](unsigned from, unsigned count) {
      std::string text = "{";
      for (unsigned i = 0; i < count; ++i)
        text += (i ? ", %r" : "%r") + std::to_string(from + i);
      return text + "}";
    };
    for (unsigned i = 0; i < each; ++i)
      loads += "  ld.global.b32 %r" + std::to_string(i) + ", [%d0+" +
               std::to_string(4 * i) + "];\n";
    std::string stores;
    for (unsigned i = 0; i < sums; ++i)
      stores += "  st.global.b32 [%d0+" + std::to_string(4 * i) + "], %r" +
                std::to_string(20 + i) + ";\n";
    Buffer buffer(words);
    std::string vectorA = list(0, left), vectorB = list(left, right);
    if (right == 1)
      vectorB = "%r" + std::to_string(left);
    CUresult result = runKernel(
        kernelText(1, registers,
                   "  mad.wide.u32 %d0, %thread, " + std::to_string(4 * each) +
                       ", %p0;\n" + loads + "  mma.sync.aligned." +
                       shape.instruction + " " + list(20, sums) + ", " +
                       vectorA + ", " + vectorB + ", " +
                       list(left + right, sums) + ";\n" + stores),
        buffer);
    ASSERT_EQ(result, CUDA_SUCCESS) << cuEmuLastError();
    std::vector<uint32_t> out = buffer.read<uint32_t>();
    for (unsigned n = 0; n < 32; ++n)
      for (unsigned i = 0; i < 4; ++i) {
        unsigned row = n / 4 + i / 2 * 8, column = n % 4 * 2 + i % 2;
        int expected = c[row][column];
        for (unsigned j = 0; j < k; ++j)
          expected += a[row][j] * b[j][column];
        uint32_t value = std::bit_cast<uint32_t>(float(expected));
        uint32_t found = shape.narrowSums
                             ? out[n * each + i / 2] >> 16 * (i % 2) & 0xffff
                             : out[n * each + i];
        if (shape.narrowSums)
          value = uint32_t(
              convert(formatNamed("f16"), "rn", formatNamed("f32"), value));
        ASSERT_EQ(found, value)
            << shape.instruction << " " << row << " " << column;
      }
  }
}

TEST_F(WarpTest, MatricesBetweenMemoryAndRegisters) {
  // Four matrices of 8x8 numbers, 0 to 255; lane n gives row n.
  for (bool transposes : {false, true})
    for (bool stores : {false, true}) {
      std::string fill =
          stores ? ""
                 : "  shl.b32 %r1, %thread, 3;\n  mov.u32 %r9, 0;\n$fill:\n"
                   "  add.u32 %r2, %r1, %r9;\n  cvt.u16.u32 %h0, %r2;\n"
                   "  shl.b32 %r3, %r2, 1;\n  st.shared.b16 [%r3], %h0;\n"
                   "  add.u32 %r9, %r9, 1;\n  setp.lt.u32 %q0, %r9, 8;\n"
                   "  @%q0 bra $fill;\n  bar.warp.sync -1;\n";
      std::string trans = transposes ? ".trans" : "";
      std::string move = "  shl.b32 %r4, %thread, 4;\n";
      if (!stores)
        move += "  ldmatrix.sync.aligned.m8n8.x4" + trans +
                ".shared.b16 {%r10, %r11, %r12, %r13}, [%r4];\n";
      else
        // Lane n holds elements 2n and 2n + 1 of each matrix.
        move += "  shl.b32 %r5, %thread, 1;\n  add.u32 %r6, %r5, 1;\n"
                "  shl.b32 %r7, %r6, 16;\n  or.b32 %r10, %r7, %r5;\n"
                "  add.u32 %r11, %r10, 0x400040;\n"
                "  add.u32 %r12, %r11, 0x400040;\n"
                "  add.u32 %r13, %r12, 0x400040;\n"
                "  stmatrix.sync.aligned.m8n8.x4" +
                trans +
                ".shared.b16 [%r4], {%r10, %r11, %r12, %r13};\n"
                "  bar.warp.sync -1;\n"
                "  ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r4];\n";
      Buffer buffer(std::vector<uint32_t>(128));
      CUresult result = runKernel(
          kernelText(
              1, registers + std::string("  .shared .align 16 .b8 m[512];\n"),
              fill + move +
                  "  mad.wide.u32 %d0, %thread, 16, %p0;\n"
                  "  st.global.v4.b32 [%d0], {%r10, %r11, %r12, %r13};\n"),
          buffer);
      ASSERT_EQ(result, CUDA_SUCCESS) << cuEmuLastError();
      std::vector<uint16_t> out = buffer.read<uint16_t>();
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned q = 0; q < 4; ++q)
          for (unsigned i = 0; i < 2; ++i) {
            unsigned row = lane / 4, column = lane % 4 * 2 + i;
            unsigned expected =
                64 * q + (transposes ? column * 8 + row : row * 8 + column);
            unsigned found = out[lane * 8 + 2 * q + i];
            if (stores) {
              // Words 4q' of row `lane` of the memory: rows of 8 numbers.
              unsigned at = 8 * lane + 2 * q + i, inside = at % 64;
              expected = at / 64 * 64 +
                         (transposes ? inside % 8 * 8 + inside / 8 : inside);
            }
            ASSERT_EQ(found, expected)
                << stores << transposes << lane << q << i;
          }
    }
}

} // namespace

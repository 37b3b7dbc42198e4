//===- MemoryTest.cpp - Loads, stores, atomics, copies --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

#include <numeric>

using namespace gpuemu::test;

namespace {

class MemoryTest : public EmulatorTest {};

const char *const registers =
    "  .reg .b16 %h<9>;\n  .reg .b32 %r<20>;\n  .reg .b64 %d<20>;\n"
    "  .reg .pred %q<4>;\n";

/// Words of a buffer that a kernel has changed.
template <typename T>
std::vector<T> after(const std::string &text, std::vector<T> words,
                     unsigned threads = 32, unsigned blocks = 1,
                     unsigned shared = 0) {
  Buffer buffer(words);
  CUresult result = runKernel(text, buffer, threads, blocks, shared);
  EXPECT_EQ(result, CUDA_SUCCESS) << cuEmuLastError();
  if (result)
    return std::vector<T>(words.size(), T(0x77));
  return buffer.read<T>();
}

TEST_F(MemoryTest, NarrowLoadsExtendAsTheTypeSays) {
  std::vector<uint32_t> out = after<uint32_t>(
      kernelText(
          1, registers,
          "  ld.global.s8 %r0, [%p0];\n  ld.global.u8 %r1, [%p0];\n"
          "  ld.global.s16 %r2, [%p0+2];\n  ld.global.b8 %h0, [%p0+1];\n"
          "  cvt.u32.u16 %r3, %h0;\n  ld.global.s8 %h1, [%p0];\n"
          "  mov.b32 %r4, {%h1, %h0};\n"
          "  st.global.v4.b32 [%p0+16], {%r0, %r1, %r2, %r3};\n"
          "  st.global.b32 [%p0+32], %r4;\n  st.global.b8 [%p0+36], %r2;\n"
          "  st.global.b16 [%p0+38], 258;\n"),
      {0x80017ff0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1);
  EXPECT_EQ(out[4], 0xfffffff0u);
  EXPECT_EQ(out[5], 0xf0u);
  EXPECT_EQ(out[6], 0xffff8001u);
  EXPECT_EQ(out[7], 0x7fu);
  EXPECT_EQ(out[8], 0x007ffff0u);
  EXPECT_EQ(out[9], 0x01020001u);
}

TEST_F(MemoryTest, VectorsPerLane) {
  // Each thread swaps the halves of its 16 bytes: contiguous, and, in the
  // second kernel, in reverse order and by odd threads alone.
  std::vector<uint32_t> words(128);
  std::iota(words.begin(), words.end(), 0);
  std::string swap = "  ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0];\n"
                     "  st.global.v4.b32 [%d0], {%r2, %r3, %r0, %r1};\n";
  std::vector<uint32_t> all =
      after(kernelText(1, registers,
                       "  mad.wide.u32 %d0, %thread, 16, %p0;\n" + swap),
            words);
  std::vector<uint32_t> odd = after(
      kernelText(1, registers,
                 "  sub.u32 %r9, 31, %thread;\n"
                 "  mad.wide.u32 %d0, %r9, 16, %p0;\n"
                 "  and.b32 %r8, %thread, 1;\n  setp.eq.u32 %q0, %r8, 0;\n"
                 "  @%q0 bra $done;\n" +
                     swap + "$done:\n"),
      words);
  for (uint32_t i = 0; i < 128; ++i) {
    EXPECT_EQ(all[i], i ^ 2);
    EXPECT_EQ(odd[i], i / 4 % 2 == 0 ? i ^ 2 : i);
  }
}

TEST_F(MemoryTest, VariablesWithInitialValues) {
  std::string variables =
      ".visible .global .align 4 .b8 table[8] = {1, 2, 3, 4, 255, 0xff, 7};\n"
      ".visible .global .align 8 .u64 pointer = generic(table)+4;\n"
      ".const .align 4 .f32 pair[2] = {0f3F800000, -2.5};\n"
      ".global .align 4 .b32 matrix[2][2] = {{1, 2}, {3, 4}};\n";
  std::vector<uint32_t> out = after<uint32_t>(
      kernelText(
          1, registers,
          "  ld.global.b32 %r0, [table];\n  ld.global.u64 %d0, [pointer];\n"
          "  ld.b32 %r1, [%d0];\n  ld.const.f32 %r2, [pair+4];\n"
          "  ld.global.b32 %r3, [matrix+12];\n"
          "  st.global.v4.b32 [%p0], {%r0, %r1, %r2, %r3};\n",
          variables),
      {0, 0, 0, 0}, 1);
  EXPECT_EQ(out,
            (std::vector<uint32_t>{0x04030201, 0x0007ffff, 0xc0200000, 4}));
  Kernel kernel(kernelText(0, "", "", variables));
  CUdeviceptr address = 0;
  size_t bytes = 0;
  check(cuModuleGetGlobal_v2(&address, &bytes, kernel.module, "table"));
  EXPECT_EQ(bytes, 8u);
  EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, kernel.module, "no"),
            CUDA_ERROR_NOT_FOUND);
}

TEST_F(MemoryTest, SharedMemoryOfFixedAndOfGivenSize) {
  // The block reverses its words through both, also by generic addresses.
  std::string text = kernelText(
      1, registers + std::string("  .shared .align 4 .b8 fixed[128];\n"),
      "  mad.wide.u32 %d0, %thread, 4, %p0;\n  ld.global.b32 %r0, [%d0];\n"
      "  shl.b32 %r1, %thread, 2;\n  mov.u32 %r2, fixed;\n"
      "  add.u32 %r3, %r2, %r1;\n  st.shared.b32 [%r3], %r0;\n"
      "  mov.u64 %d1, dynamic;\n  cvta.shared.u64 %d2, %d1;\n"
      "  mad.wide.u32 %d3, %thread, 4, %d2;\n  st.b32 [%d3], %r0;\n"
      "  bar.sync 0;\n  sub.u32 %r4, 124, %r1;\n  add.u32 %r5, %r2, %r4;\n"
      "  ld.shared.b32 %r6, [%r5];\n  cvt.u64.u32 %d4, %r4;\n"
      "  add.u64 %d5, %d2, %d4;\n  ld.b32 %r7, [%d5];\n"
      "  add.u32 %r8, %r6, %r7;\n  st.global.b32 [%d0], %r8;\n",
      ".extern .shared .align 16 .b8 dynamic[];\n");
  std::vector<uint32_t> words(32);
  std::iota(words.begin(), words.end(), 0);
  std::vector<uint32_t> out = after(text, words, 32, 1, 128);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], 2 * (31 - i));
}

TEST_F(MemoryTest, LocalMemoryIsEachThreadsOwn) {
  std::string text = kernelText(
      1, registers + std::string("  .local .align 8 .b8 depot[16];\n"),
      "  mov.b64 %d0, depot;\n  cvta.local.u64 %d1, %d0;\n"
      "  st.local.b32 [%d0+4], %thread;\n  add.u32 %r0, %thread, 100;\n"
      "  st.b32 [%d1+8], %r0;\n  ld.b32 %r1, [%d1+4];\n"
      "  ld.local.b32 %r2, [%d0+8];\n  add.u32 %r3, %r1, %r2;\n"
      "  mad.wide.u32 %d2, %thread, 4, %p0;\n  st.global.b32 [%d2], %r3;\n");
  std::vector<uint32_t> out = after(text, std::vector<uint32_t>(64), 64);
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], 2 * i + 100);
}

/// What 32 lanes find and leave, each adding or storing `operand`.
std::pair<uint64_t, uint64_t> atomicOf(const std::string &instruction,
                                       unsigned bits, uint64_t start,
                                       const std::string &operand) {
  std::string b = ".b" + std::to_string(bits);
  std::string type = bits == 64 ? "%d" : bits == 32 ? "%r" : "%h";
  std::string text = kernelText(
      1, registers,
      "  " + operand + "\n  atom.global." + instruction + " " + type +
          "0, [%p0], " + type + "1" +
          (instruction.find("cas") != std::string::npos ? ", " + type + "2"
                                                        : "") +
          ";\n  setp.eq.u32 %q0, %thread, 31;\n  @%q0 st.global" + b +
          " [%p0+8], " + type + "0;\n");
  std::vector<uint64_t> out = after<uint64_t>(text, {start, 0});
  return {out[0], out[1]};
}

TEST_F(MemoryTest, AtomicsOfEachOperation) {
  struct {
    std::string instruction, operand;
    unsigned bits;
    uint64_t start, expected, last;
  } cases[] = {
      {"add.u32", "mov.u32 %r1, 3;", 32, 5, 101, 98},
      {"add.u64", "mov.u64 %d1, -1;", 64, 5, uint64_t(-27), uint64_t(-26)},
      {"add.f32", "mov.b32 %r1, 0f3F000000;", 32, 0, 0x41800000, 0x41780000},
      {"add.f64", "mov.b64 %d1, 0d3FE0000000000000;", 64, 0, 0x4030000000000000,
       0x402f000000000000},
      {"add.noftz.f16x2", "mov.b32 %r1, 0x3c00bc00;", 32, 0, 0x5000d000,
       0x4fc0cfc0},
      {"add.noftz.bf16", "mov.b16 %h1, 0x3f80;", 16, 0, 0x4200, 0x41f8},
      {"min.s32", "sub.s32 %r1, 10, %thread;", 32, 3, uint32_t(-21),
       uint32_t(-20)},
      {"max.u32", "mov.u32 %r1, %thread;", 32, 3, 31, 30},
      {"and.b32", "mov.u32 %r1, 0xf0;", 32, 0x3c, 0x30, 0x30},
      {"or.b64", "mov.u64 %d1, 0xf0;", 64, 0x3c, 0xfc, 0xfc},
      {"xor.b32", "mov.u32 %r1, 1;", 32, 8, 8, 9},
      {"exch.b32", "mov.u32 %r1, %thread;", 32, 99, 31, 30},
      {"inc.u32", "mov.u32 %r1, 4;", 32, 0, 2, 1},
      {"dec.u32", "mov.u32 %r1, 4;", 32, 0, 3, 4},
      {"cas.b32", "mov.u32 %r1, %thread;\n add.u32 %r2, %thread, 1;", 32, 0, 32,
       31},
      {"cas.b64", "mov.u64 %d1, 7;\n mov.u64 %d2, 8;", 64, 7, 8, 8},
  };
  for (const auto &each : cases) {
    auto [left, last] =
        atomicOf(each.instruction, each.bits, each.start, each.operand);
    EXPECT_EQ(left, each.expected) << each.instruction;
    EXPECT_EQ(last, each.last) << each.instruction;
  }
}

TEST_F(MemoryTest, SumsOfSubnormalNumbersFlushInGlobalMemoryAlone) {
  std::string text = kernelText(
      1, registers + std::string("  .shared .align 4 .b32 cell;\n"),
      "  mov.b32 %r0, 1;\n  red.global.add.f32 [%p0], %r0;\n"
      "  st.shared.b32 [cell], 0;\n  atom.shared.add.f32 %r1, [cell], %r0;\n"
      "  ld.shared.b32 %r2, [cell];\n  st.global.b32 [%p0+4], %r2;\n");
  EXPECT_EQ(after<uint32_t>(text, {0, 0}, 1), (std::vector<uint32_t>{0, 1}));
}

TEST_F(MemoryTest, AsynchronousCopiesArriveWhenTheyAreWaitedFor) {
  // Two groups; the second is zero past 8 bytes.
  std::string text = kernelText(
      1, registers + std::string("  .shared .align 16 .b8 tile[32];\n"),
      "  mov.u32 %r0, tile;\n"
      "  cp.async.cg.shared.global [%r0], [%p0], 16;\n"
      "  cp.async.commit_group;\n"
      "  cp.async.ca.shared.global [%r0+16], [%p0+16], 16, 8;\n"
      "  cp.async.commit_group;\n  cp.async.wait_group 1;\n"
      "  ld.shared.v2.b32 {%r1, %r2}, [tile+8];\n"
      "  cp.async.wait_all;\n"
      "  ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [tile+16];\n"
      "  st.global.v2.b32 [%p0], {%r1, %r2};\n"
      "  st.global.v4.b32 [%p0+16], {%r4, %r5, %r6, %r7};\n");
  EXPECT_EQ(after<uint32_t>(text, {1, 2, 3, 4, 5, 6, 7, 8}, 1),
            (std::vector<uint32_t>{3, 4, 3, 4, 5, 6, 0, 0}));
}

TEST_F(MemoryTest, ParametersOfAnySize) {
  std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 .ptr .global .align 16 out, .param .u8 "
      "b,\n"
      "  .param .align 8 .b8 s[24], .param .f32 f)\n{\n"
      "  .reg .b64 %d<9>;\n  .reg .b32 %r<9>;\n  .reg .b16 %h<2>;\n"
      "  ld.param.u64 %d0, [out];\n  ld.param.u8 %h0, [b];\n"
      "  ld.param.u64 %d1, [s+16];\n  ld.param.f32 %r0, [f];\n"
      "  mov.b64 %d2, s;\n  cvta.param.u64 %d3, %d2;\n  ld.u64 %d4, [%d3+8];\n"
      "  st.global.u64 [%d0], %d1;\n  st.global.u64 [%d0+8], %d4;\n"
      "  st.global.b32 [%d0+16], %r0;\n  st.global.u8 [%d0+20], %h0;\n  "
      "ret;\n}\n";
  Buffer buffer(std::vector<uint64_t>(3));
  Kernel kernel(text);
  uint8_t b = 200;
  uint64_t s[3] = {1, 2, 3};
  float f = 1.5f;
  check(kernel.launch({&buffer.address, &b, s, &f}, 1));
  // Parameters were copied when the kernel was launched.
  b = 0;
  s[1] = s[2] = 0;
  std::vector<uint64_t> out = buffer.read<uint64_t>();
  EXPECT_EQ(out,
            (std::vector<uint64_t>{3, 2, uint64_t(200) << 32 | 0x3fc00000}));
}

} // namespace

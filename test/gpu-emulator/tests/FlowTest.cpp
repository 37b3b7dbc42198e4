//===- FlowTest.cpp - Branches, calls, barriers, special registers --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

using namespace gpuemu::test;

namespace {

class FlowTest : public EmulatorTest {};

const char *const registers =
    "  .reg .b32 %r<20>;\n  .reg .b64 %d<9>;\n  .reg .pred %q<9>;\n";

std::vector<uint32_t> run(const std::string &body, unsigned threads,
                          unsigned blocks = 1,
                          const std::string &beforeKernel = "",
                          const std::string &declarations = "") {
  Buffer buffer(std::vector<uint32_t>(threads * blocks));
  std::string text =
      kernelText(1, registers + declarations,
                 "  mov.u32 %r18, %ctaid.x;\n  mov.u32 %r19, %ntid.x;\n"
                 "  mad.lo.u32 %r17, %r18, %r19, %thread;\n"
                 "  mad.wide.u32 %d0, %r17, 4, %p0;\n" +
                     body + "\n  st.global.b32 [%d0], %r0;\n",
                 beforeKernel);
  CUresult result = runKernel(text, buffer, threads, blocks);
  EXPECT_EQ(result, CUDA_SUCCESS) << cuEmuLastError();
  return result ? std::vector<uint32_t>(threads * blocks)
                : buffer.read<uint32_t>();
}

TEST_F(FlowTest, LoopsOfDifferentLengthMeetAgain) {
  // Collatz steps; the vote after the loop needs the whole warp.
  std::vector<uint32_t> out =
      run("  add.u32 %r1, %thread, 1;\n  mov.u32 %r0, 0;\n$loop:\n"
          "  setp.eq.u32 %q0, %r1, 1;\n  @%q0 bra $done;\n"
          "  and.b32 %r2, %r1, 1;\n  setp.eq.u32 %q1, %r2, 0;\n"
          "  @%q1 bra $even;\n  mad.lo.u32 %r1, %r1, 3, 1;\n  bra.uni $next;\n"
          "$even:\n  shr.u32 %r1, %r1, 1;\n$next:\n  add.u32 %r0, %r0, 1;\n"
          "  bra $loop;\n$done:\n  activemask.b32 %r3;\n"
          "  setp.eq.u32 %q2, %r3, -1;\n  @!%q2 mov.u32 %r0, 9999;\n",
          64);
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t steps = 0;
    for (uint32_t x = i + 1; x != 1; ++steps)
      x = x % 2 ? 3 * x + 1 : x / 2;
    EXPECT_EQ(out[i], steps);
  }
}

TEST_F(FlowTest, BranchesByIndex) {
  std::vector<uint32_t> out = run(
      "  and.b32 %r1, %thread, 3;\n  ts: .branchtargets $a, $b, $c, $b;\n"
      "  brx.idx %r1, ts;\n$a:\n  mov.u32 %r0, 10;\n  bra $end;\n"
      "$b:\n  mov.u32 %r0, 20;\n  bra $end;\n$c:\n  mov.u32 %r0, 30;\n$end:\n",
      32);
  const uint32_t expected[] = {10, 20, 30, 20};
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], expected[i % 4]);
}

TEST_F(FlowTest, CallsFromDifferentPlaces) {
  std::string functions =
      ".func (.param .b32 r) twice(.param .b32 a)\n{\n  .reg .b32 %r<3>;\n"
      "  ld.param.b32 %r0, [a];\n  add.u32 %r1, %r0, %r0;\n"
      "  st.param.b32 [r], %r1;\n  ret;\n}\n"
      ".func (.param .b32 r) early(.param .b32 a, .param .align 8 .b8 "
      "s[8])\n{\n"
      "  .reg .b32 %r<4>;\n  .reg .pred %q;\n  ld.param.b32 %r0, [a];\n"
      "  setp.lt.u32 %q, %r0, 8;\n  @!%q bra $far;\n"
      "  st.param.b32 [r], 7;\n  ret;\n$far:\n"
      "  { .param .b32 x; .param .b32 y;\n  st.param.b32 [x], %r0;\n"
      "  call.uni (y), twice, (x);\n  ld.param.b32 %r1, [y]; }\n"
      "  ld.param.b32 %r2, [s+4];\n  add.u32 %r3, %r1, %r2;\n"
      "  st.param.b32 [r], %r3;\n  ret;\n}\n";
  std::string call =
      "  { .param .b32 x; .param .align 8 .b8 s[8]; .param .b32 y;\n"
      "  st.param.b32 [x], %thread;\n  st.param.v2.b32 [s], {%thread, 1000};\n"
      "  call (y), early, (x, s);\n  ld.param.b32 %r1, [y]; }\n";
  std::vector<uint32_t> out =
      run("  setp.lt.u32 %q0, %thread, 16;\n  @%q0 bra $low;\n" + call +
              "  add.u32 %r0, %r1, 5;\n  bra $end;\n$low:\n" + call +
              "  mov.u32 %r0, %r1;\n$end:\n",
          32, 1, functions);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], (i < 8 ? 7 : 2 * i + 1000) + (i < 16 ? 0 : 5));
}

TEST_F(FlowTest, SpecialRegisters) {
  struct {
    const char *name;
    uint32_t (*expected)(uint32_t thread, uint32_t block);
  } cases[] = {
      {"%tid.x", [](uint32_t t, uint32_t) { return t; }},
      {"%tid.y", [](uint32_t, uint32_t) { return 0u; }},
      {"%ntid.x", [](uint32_t, uint32_t) { return 96u; }},
      {"%ntid.z", [](uint32_t, uint32_t) { return 1u; }},
      {"%ctaid.x", [](uint32_t, uint32_t b) { return b; }},
      {"%nctaid.x", [](uint32_t, uint32_t) { return 3u; }},
      {"%laneid", [](uint32_t t, uint32_t) { return t % 32; }},
      {"%warpid", [](uint32_t t, uint32_t) { return t / 32; }},
      {"%lanemask_eq", [](uint32_t t, uint32_t) { return 1u << t % 32; }},
      {"%lanemask_lt", [](uint32_t t, uint32_t) { return (1u << t % 32) - 1; }},
      {"%lanemask_le", [](uint32_t t, uint32_t) { return (2u << t % 32) - 1; }},
      {"%lanemask_gt",
       [](uint32_t t, uint32_t) { return ~((2u << t % 32) - 1); }},
      {"%lanemask_ge",
       [](uint32_t t, uint32_t) { return ~((1u << t % 32) - 1); }},
  };
  for (const auto &each : cases) {
    std::vector<uint32_t> out =
        run("  mov.u32 %r0, " + std::string(each.name) + ";", 96, 3);
    for (uint32_t i = 0; i < 96 * 3; ++i)
      ASSERT_EQ(out[i], each.expected(i % 96, i / 96)) << each.name;
  }
}

TEST_F(FlowTest, ThreadsInThreeDimensions) {
  Buffer buffer(std::vector<uint32_t>(2 * 3 * 4));
  Kernel kernel(kernelText(
      1, registers,
      "  mov.u32 %r1, %tid.y;\n  mov.u32 %r2, %tid.z;\n"
      "  mad.lo.u32 %r3, %r2, 3, %r1;\n  mad.lo.u32 %r4, %r3, 2, %thread;\n"
      "  mad.wide.u32 %d0, %r4, 4, %p0;\n  st.global.b32 [%d0], %r4;\n"));
  void *parameters[] = {&buffer.address};
  check(cuLaunchKernel(kernel.function, 1, 1, 1, 2, 3, 4, 0, nullptr,
                       parameters, nullptr));
  std::vector<uint32_t> out = buffer.read<uint32_t>();
  for (uint32_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i);
}

TEST_F(FlowTest, BarriersThatReduceAndThatHaveNames) {
  std::vector<uint32_t> out =
      run("  setp.lt.u32 %q0, %thread, 40;\n"
          "  barrier.cta.red.popc.aligned.u32 %r1, 0, %q0;\n"
          "  bar.red.and.pred %q1, 0, %q0;\n  bar.red.or.pred %q2, 0, !%q0;\n"
          "  selp.b32 %r2, 100, 0, %q1;\n  selp.b32 %r3, 1000, 0, %q2;\n"
          "  add.u32 %r0, %r1, %r2;\n  add.u32 %r0, %r0, %r3;\n",
          64);
  for (uint32_t value : out)
    EXPECT_EQ(value, 1040u);
  // The first warp hands a word to the second, by barrier 3 of 64 threads;
  // the third does not take part.
  out =
      run("  mov.u32 %r0, 5;\n  shr.u32 %r1, %thread, 5;\n"
          "  setp.eq.u32 %q0, %r1, 0;\n  setp.eq.u32 %q1, %r1, 1;\n"
          "  @%q1 bra $second;\n  @!%q0 bra $end;\n"
          "  setp.eq.u32 %q2, %thread, 0;\n"
          "  @%q2 st.shared.b32 [cell], 77;\n  bar.arrive 3, 64;\n  bra $end;\n"
          "$second:\n  bar.sync 3, 64;\n  ld.shared.b32 %r0, [cell];\n$end:\n",
          96, 1, "", "  .shared .align 4 .b32 cell;\n");
  EXPECT_EQ(out[40], 77u);
  EXPECT_EQ(out[80], 5u);
}

TEST_F(FlowTest, LanesThatSpinLetOthersGoOn) {
  // Each lane of a warp takes a lock in turn.
  std::vector<uint32_t> out =
      run("  setp.eq.u32 %q1, %thread, 0;\n  @%q1 st.shared.b32 [lock], 0;\n"
          "  @%q1 st.shared.b32 [sum], 0;\n"
          "  bar.warp.sync -1;\n$spin:\n"
          "  atom.shared.cas.b32 %r1, [lock], 0, 1;\n"
          "  setp.ne.u32 %q0, %r1, 0;\n  @%q0 bra $spin;\n"
          "  atom.shared.add.u32 %r2, [sum], 1;\n"
          "  atom.shared.exch.b32 %r3, [lock], 0;\n"
          "  bar.warp.sync -1;\n  atom.shared.add.u32 %r0, [sum], 0;\n",
          32, 1, "",
          "  .shared .align 4 .b32 lock;\n  .shared .align 4 .b32 sum;\n");
  EXPECT_EQ(out[9], 32u);
}

TEST_F(FlowTest, ResultsDoNotDependOnTheSeed) {
  for (uint64_t seed : {1, 2, 3, 4}) {
    cuEmuSeed(seed);
    std::vector<uint32_t> out =
        run("  shl.b32 %r1, %thread, 2;\n"
            "  mov.u32 %r2, cells;\n  add.u32 %r3, %r2, %r1;\n"
            "  st.shared.b32 [%r3], %thread;\n  bar.sync 0;\n"
            "  xor.b32 %r4, %r1, 252;\n  add.u32 %r5, %r2, %r4;\n"
            "  ld.shared.b32 %r0, [%r5];\n",
            64, 5, "", "  .shared .align 4 .b8 cells[256];\n");
    for (uint32_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], 63 - i % 64);
  }
  cuEmuSeed(0);
}

} // namespace

//===- FaultTest.cpp - Kernels with errors, and modules refused -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstring>

using namespace gpuemu::test;

namespace {

class FaultTest : public EmulatorTest {
protected:
  void TearDown() override {
    cuEmuSeed(0);
    EmulatorTest::TearDown();
  }
};

const char *const registers =
    "  .reg .b32 %r<20>;\n  .reg .b64 %d<9>;\n  .reg .pred %q<9>;\n"
    "  .shared .align 4 .b8 cells[256];\n";

/// The error of a kernel with one buffer of 64 words, and that its words name
/// the line with `marked`. The error stays, as on a GPU.
void expectFault(CUresult error, const std::string &words,
                 const std::string &body, const std::string &marked,
                 unsigned threads = 64, bool written = true) {
  Buffer buffer(size_t(256));
  if (written)
    check(cuMemsetD8_v2(buffer.address, 0, 256));
  std::string text = kernelText(1, registers, body);
  EXPECT_EQ(runKernel(text, buffer, threads), error) << words;
  std::string said = cuEmuLastError();
  EXPECT_NE(said.find(words), std::string::npos) << said;
  size_t line =
      1 + size_t(std::count(text.begin(),
                            text.begin() + ptrdiff_t(text.find(marked)), '\n'));
  EXPECT_NE(
      said.find("kernel k, PTX line " + std::to_string(line) + " `" + marked),
      std::string::npos)
      << said;
  EXPECT_EQ(cuCtxSynchronize(), error);
  size_t free = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free, nullptr), error);
  check(cuDevicePrimaryCtxReset_v2(0));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

const std::string cell = "  shl.b32 %r1, %thread, 2;\n  mov.u32 %r2, cells;\n"
                         "  add.u32 %r3, %r2, %r1;\n";
const std::string next = "  xor.b32 %r4, %r3, 4;\n";

TEST_F(FaultTest, AccessesOutOfBounds) {
  expectFault(CUDA_ERROR_ILLEGAL_ADDRESS, "256 bytes after the start",
              "  ld.global.b32 %r0, [%p0+256];", "ld.global.b32");
  expectFault(CUDA_ERROR_ILLEGAL_ADDRESS, "lies in no allocation",
              "  mov.u64 %d0, 4096;\n  st.global.b32 [%d0], 1;",
              "st.global.b32");
  // The last of 64 threads alone.
  expectFault(
      CUDA_ERROR_ILLEGAL_ADDRESS, "thread (63,0,0)",
      "  mad.wide.u32 %d0, %thread, 4, %p0;\n  st.global.b32 [%d0+4], 1;",
      "st.global.b32");
  expectFault(CUDA_ERROR_ILLEGAL_ADDRESS, "bytes of shared memory",
              cell + "  st.shared.b32 [%r3+4], 1;", "st.shared.b32");
  expectFault(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned",
              "  st.global.b32 [%p0+2], 1;", "st.global.b32");
  // A vector is aligned as a whole.
  expectFault(CUDA_ERROR_MISALIGNED_ADDRESS, "8 bytes at the misaligned",
              "  ld.global.v2.b32 {%r0, %r1}, [%p0+4];", "ld.global.v2.b32");
}

TEST_F(FaultTest, UseAfterFree) {
  CUdeviceptr address = 0;
  check(cuMemAlloc_v2(&address, 64));
  {
    Kernel kernel(kernelText(1, registers, "  st.global.b32 [%p0], 1;"));
    check(cuMemFree_v2(address));
    check(kernel.launch({&address}));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_NE(std::string(cuEmuLastError()).find("that was freed"),
              std::string::npos)
        << cuEmuLastError();
  }
}

TEST_F(FaultTest, ReadsOfMemoryThatNothingWrote) {
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "global memory that nothing wrote",
              "  ld.global.b32 %r0, [%p0+8];", "ld.global.b32", 64, false);
  // A whole warp at once, of which the last word is missing.
  expectFault(
      CUDA_ERROR_LAUNCH_FAILED, "global memory that nothing wrote",
      "  mad.wide.u32 %d0, %thread, 4, %p0;\n"
      "  setp.lt.u32 %q0, %thread, 31;\n  @%q0 st.global.b32 [%d0], 1;\n"
      "  ld.global.b32 %r0, [%d0];",
      "ld.global.b32", 32, false);
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "shared memory that nothing wrote",
              "  ld.shared.b32 %r0, [cells+4];", "ld.shared.b32");
  // Bytes of cp.async count only when they have been waited for.
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "shared memory that nothing wrote",
              "  cp.async.ca.shared.global [cells], [%p0], 4;\n"
              "  ld.shared.b32 %r0, [cells];",
              "ld.shared.b32", 1);
  Buffer buffer(size_t(16));
  check(cuMemsetD8_v2(buffer.address, 0, 8));
  uint32_t host[4];
  EXPECT_EQ(cuMemcpyDtoH_v2(host, buffer.address, 8), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(host, buffer.address, 16),
            CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(FaultTest, RacesInSharedMemory) {
  // Each thread reads what its neighbour in the warp wrote.
  expectFault(CUDA_ERROR_LAUNCH_FAILED,
              "a read after a write without a barrier",
              cell + next +
                  "  st.shared.b32 [%r3], %thread;\n"
                  "  ld.shared.b32 %r5, [%r4];",
              "ld.shared.b32");
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "two writes without a barrier",
              "  st.shared.b32 [cells], %thread;", "st.shared.b32");
  expectFault(CUDA_ERROR_LAUNCH_FAILED,
              "a write after a read without a barrier",
              cell + next +
                  "  st.shared.b32 [%r3], %thread;\n  bar.sync 0;\n"
                  "  ld.shared.b32 %r5, [%r4];\n  add.u32 %r6, %r5, 1;\n"
                  "  st.shared.u32 [%r3], %r6;",
              "st.shared.u32");
  // A barrier of the warp does not order other warps.
  expectFault(CUDA_ERROR_LAUNCH_FAILED,
              "a write after a read without a barrier",
              cell + "  xor.b32 %r4, %r1, 128;\n  add.u32 %r4, %r2, %r4;\n"
                     "  st.shared.b32 [%r3], 0;\n  bar.sync 0;\n"
                     "  st.shared.u32 [%r3], %thread;\n  bar.warp.sync -1;\n"
                     "  ld.shared.b32 %r5, [%r4];",
              "st.shared.u32");
}

TEST_F(FaultTest, WhatIsNoRace) {
  for (std::string body :
       {cell + next +
            "  st.shared.b32 [%r3], %thread;\n  bar.sync 0;\n"
            "  ld.shared.b32 %r5, [%r4];\n  bar.sync 0;\n"
            "  st.shared.b32 [%r3], %r5;",
        cell + next +
            "  st.shared.b32 [%r3], %thread;\n  bar.warp.sync -1;\n"
            "  ld.shared.b32 %r5, [%r4];",
        std::string("  setp.eq.u32 %q0, %thread, 0;\n"
                    "  @%q0 st.shared.b32 [cells], 0;\n  bar.sync 0;\n"
                    "  atom.shared.add.u32 %r0, [cells], 1;"),
        cell +
            "  st.shared.b32 [%r3], %thread;\n  ld.shared.b32 %r5, [%r3];"}) {
    Buffer buffer(size_t(256));
    EXPECT_EQ(runKernel(kernelText(1, registers, body), buffer, 64),
              CUDA_SUCCESS)
        << cuEmuLastError();
  }
}

TEST_F(FaultTest, BarriersThatNotAllReach) {
  expectFault(
      CUDA_ERROR_LAUNCH_FAILED, "16 of 64 wait at it",
      "  setp.ge.u32 %q0, %thread, 16;\n  @%q0 bra $end;\n  bar.sync 0;\n"
      "$end:",
      "bar.sync 0");
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "32 have left the kernel",
              "  setp.ge.u32 %q0, %thread, 32;\n  @%q0 exit;\n  bar.sync 0;",
              "bar.sync 0");
  // Half of a warp waits at one barrier, half at another.
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "a barrier that not all threads reach",
              "  and.b32 %r0, %thread, 1;\n  setp.eq.u32 %q0, %r0, 0;\n"
              "  @%q0 bra $other;\n  bar.sync 0;\n  bra $end;\n"
              "$other:\n  barrier.sync.aligned 0;\n$end:",
              "bar.sync 0");
}

TEST_F(FaultTest, LanesThatDoNotMeet) {
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "has left the kernel",
              "  setp.lt.u32 %q0, %thread, 3;\n  @%q0 exit;\n"
              "  shfl.sync.bfly.b32 %r0, %thread, 1, 31, -1;",
              "shfl.sync.bfly", 32);
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "not in its own member mask",
              "  shfl.sync.bfly.b32 %r0, %thread, 1, 31, 0xffff;",
              "shfl.sync.bfly", 32);
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "never reach",
              "  setp.lt.u32 %q0, %thread, 3;\n  @%q0 bra $other;\n"
              "  bar.warp.sync -1;\n  bra $end;\n$other:\n  bar.warp.sync -1;\n"
              "  mov.u32 %r0, 0;\n$end:",
              "bar.warp.sync", 32);
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "which does not take part",
              "  setp.lt.u32 %q0, %thread, 8;\n  @!%q0 bra $end;\n"
              "  shfl.sync.idx.b32 %r0, %thread, 9, 31, 0xff;\n$end:",
              "shfl.sync.idx", 32);
}

TEST_F(FaultTest, TrapsAndKernelsThatDoNotEnd) {
  expectFault(CUDA_ERROR_LAUNCH_FAILED, "a trap", "  trap;", "trap");
  Buffer buffer(size_t(4));
  EXPECT_EQ(runKernel(kernelText(1, registers, "$l:\n  bra $l;"), buffer),
            CUDA_ERROR_LAUNCH_TIMEOUT);
}

sigjmp_buf hostFault;

TEST_F(FaultTest, TheHostCannotTouchDeviceMemory) {
  Buffer buffer(size_t(4096));
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) { siglongjmp(hostFault, 1); };
  sigaction(SIGSEGV, &action, &before);
  volatile bool faulted = true;
  if (sigsetjmp(hostFault, 1) == 0) {
    *reinterpret_cast<volatile int *>(buffer.address) = 1;
    faulted = false;
  }
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_TRUE(faulted);
}

TEST_F(FaultTest, KernelsReachOtherDevicesWhenTheyMay) {
  CUcontext first = nullptr, second = nullptr;
  check(cuCtxGetCurrent(&first));
  check(cuDevicePrimaryCtxRetain(&second, 1));
  check(cuCtxSetCurrent(second));
  CUdeviceptr far = 0;
  check(cuMemAlloc_v2(&far, 4));
  check(cuCtxSetCurrent(first));
  Kernel kernel(kernelText(1, registers, "  st.global.b32 [%p0], 1;"));
  check(kernel.launch({&far}, 1));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  check(cuDevicePrimaryCtxReset_v2(0));
  int can = 0;
  check(cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  check(cuCtxEnablePeerAccess(second, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(second, 0),
            CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  check(kernel.launch({&far}, 1));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  check(cuCtxDisablePeerAccess(second));
  check(cuCtxSetCurrent(second));
  check(cuMemFree_v2(far));
  check(cuDevicePrimaryCtxRelease_v2(1));
  check(cuCtxSetCurrent(first));
}

struct Refusal {
  std::string body, words;
};

TEST_F(FaultTest, RefusesWhatItDoesNotKnow) {
  const std::string known = "does not know the instruction";
  const Refusal refusals[] = {
      {"tex.1d.v4.f32.s32 {%r0,%r1,%r2,%r3}, [t, {%r4}];", ""},
      {"fns.b32 %r0, %r1, %r2, %r3;", known},
      {"add.rn.s32 %r0, %r1, %r2;", "with these modifiers"},
      {"add.rn.f32.f64 %r0, %r1, %r2;", "with these modifiers"},
      {"sub.rna.f32 %r0, %r1, %r2;", "with these modifiers"},
      {"add.f32.sat %r0, %r1, %r2;", "with these modifiers"},
      {"ld.global.v3.b32 {%r0, %r1, %r2}, [%p0];", "with these modifiers"},
      {"ld.global.v2.b32 {%r0, %r1, %r2}, [%p0];", "a vector of 2"},
      {"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 %r0, %r0, %r0, %r0;",
       "with these modifiers"},
      {"add.s32 %r0, %r1, %d2;", "the operand has 4 bytes and %d2 8"},
      {"cvt.sat.s64.s32 %d0, %r1;", "has all values"},
      {"add.s32 %r0, %r1;", "expected 3 operands"},
      {"add.s32 %r0, %r1, nothing;", "of another kind"},
      {"add.s32 %r99, %r1, %r2;", "the register %r99 is not known"},
      {"bra $nowhere;", "there is no label $nowhere"},
      {"ld.shared.b32 %r0, [p0];", "lies in another space"},
      {"call nothing;", "nothing defines the function nothing"},
      {"cp.async.cg.shared.global [cells], [%p0], 8;", "so many bytes"},
      {"barrier.cluster.arrive.aligned;", "with these modifiers"},
      {".maxnreg 3;", "the directive .maxnreg"},
      {"mov.u32 %r0, %clock;", "the register %clock is not known"},
  };
  for (const Refusal &each : refusals) {
    std::string text = kernelText(1, registers, "\n\n  " + each.body);
    char log[400] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadDataEx(&module, text.c_str(), 2, options, values),
              CUDA_ERROR_INVALID_PTX)
        << each.body;
    EXPECT_NE(std::string(log).find(each.words), std::string::npos)
        << each.body << ": " << log;
    size_t line =
        1 + size_t(std::count(text.begin(),
                              text.begin() + ptrdiff_t(text.find(each.body)),
                              '\n'));
    EXPECT_EQ(std::string(log).find("PTX line " + std::to_string(line) + ":"),
              0u)
        << each.body << ": " << log;
  }
}

TEST_F(FaultTest, RefusesModulesForOtherMachines) {
  CUmodule module = nullptr;
  auto load = [&](const std::string &text) {
    return cuModuleLoadData(&module, text.c_str());
  };
  EXPECT_EQ(load(".version 8.7\n.target sm_100\n.address_size 64\n"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(".version 9.9\n.target sm_80\n.address_size 64\n"),
            CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(load(".version 8.0\n.target sm_80\n.address_size 32\n"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load("\x7f"
                 "ELF"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(load(".version 8.0\n.target sm_80\n.extern .global .b32 x;\n"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(".version 8.0\n.target sm_80\n"
                 ".func f()\n{ call f; }\n.entry k() { call f; }\n"),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(cuEmuLastError()).find("calls itself"),
            std::string::npos);
}

} // namespace

//===- Harness.h - Runs kernels and single instructions ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_TESTS_HARNESS_H
#define PARTITA_TEST_GPUEMULATOR_TESTS_HARNESS_H

#include "Emulator.h"
#include "driver/Cuda.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace gpuemu::test {

/// A test that has a context of device 0. An error that a test provokes breaks
/// the context; it is whole again for the next test.
class EmulatorTest : public ::testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;
};

/// Throws with the driver's name and the emulator's words for the error.
void check(CUresult result);

/// A module with one kernel `k`, unloaded at the end.
class Kernel {
public:
  explicit Kernel(const std::string &ptx);
  ~Kernel();
  Kernel(const Kernel &) = delete;
  Kernel &operator=(const Kernel &) = delete;

  CUresult launch(const std::vector<void *> &parameters, unsigned threads = 32,
                  unsigned blocks = 1, unsigned shared = 0,
                  CUstream stream = nullptr) const;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

/// Device memory that is freed at the end.
class Buffer {
public:
  explicit Buffer(size_t bytes);
  template <typename T>
  explicit Buffer(const std::vector<T> &values)
      : Buffer(values.size() * sizeof(T)) {
    check(cuMemcpyHtoD_v2(address, values.data(), bytes));
  }
  ~Buffer();
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  template <typename T> std::vector<T> read() const {
    std::vector<T> values(bytes / sizeof(T));
    check(cuMemcpyDtoH_v2(values.data(), address, bytes));
    return values;
  }
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

/// "\n.version 8.0 ..." and a kernel `k` with the parameters `p0`, `p1`, ... of
/// 64 bits, which are loaded to %p0, %p1, ...; %thread is the thread's number.
/// The body ends the kernel.
std::string kernelText(unsigned parameters, const std::string &declarations,
                       const std::string &body,
                       const std::string &beforeKernel = "");

/// What a kernel of such a text does with one buffer of words, which it finds
/// at %p0. The CUresult is that of waiting for it.
CUresult runKernel(const std::string &text, Buffer &buffer,
                   unsigned threads = 32, unsigned blocks = 1,
                   unsigned shared = 0);

/// Runs one instruction with many operands at once. `%d`, `%a`, `%b`, `%c` and
/// `%e` are its operands; `types` are those of the registers, the result's
/// first ("b32", "pred", ...). Each row of `operands` has one value for each
/// source. Returns the results.
std::vector<uint64_t>
runInstruction(const std::string &instruction,
               const std::vector<std::string> &types,
               const std::vector<std::vector<uint64_t>> &operands);

/// A row of a table: an instruction, its types, operands and result.
struct Case {
  const char *instruction;
  std::vector<std::string> types;
  std::vector<uint64_t> operands;
  uint64_t expected;
};
/// Runs a table, all cases of an instruction at once.
void runCases(const std::vector<Case> &cases);

/// Two streams, and an event.
class StreamsTest : public EmulatorTest {
protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    for (CUstream &stream : streams)
      check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    check(cuEventCreate(&event, 0));
  }
  void TearDown() override {
    cuEmuSeed(0);
    for (CUstream stream : streams)
      cuStreamDestroy_v2(stream);
    cuEventDestroy_v2(event);
    EmulatorTest::TearDown();
  }
  CUstream streams[2] = {};
  CUevent event = nullptr;
};

/// Pinned memory that is freed at the end.
struct Pinned {
  explicit Pinned(size_t words) {
    void *pointer = nullptr;
    check(cuMemHostAlloc(&pointer, 4 * words, 0));
    data = static_cast<uint32_t *>(pointer);
    memset(data, 0, 4 * words);
  }
  ~Pinned() { cuMemFreeHost(data); }
  uint32_t *data = nullptr;
};

/// Adds one to each of 32 words.
inline const std::string increment = kernelText(
    1, "  .reg .b64 %d;\n  .reg .b32 %r;\n",
    "  mad.wide.u32 %d, %thread, 4, %p0;\n  ld.global.b32 %r, [%d];\n"
    "  add.u32 %r, %r, 1;\n  st.global.b32 [%d], %r;\n");
/// Copies 32 words.
inline const std::string copyWords =
    kernelText(2, "  .reg .b64 %d<2>;\n  .reg .b32 %r;\n",
               "  mad.wide.u32 %d0, %thread, 4, %p0;\n  mad.wide.u32 %d1, "
               "%thread, 4, %p1;\n"
               "  ld.global.b32 %r, [%d0];\n  st.global.b32 [%d1], %r;\n");

} // namespace gpuemu::test

#endif // PARTITA_TEST_GPUEMULATOR_TESTS_HARNESS_H

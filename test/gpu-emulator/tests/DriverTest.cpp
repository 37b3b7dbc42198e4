//===- DriverTest.cpp - Streams, events, copies ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

#include <cfenv>
#include <cfloat>
#include <limits>
#include <thread>
#include <xmmintrin.h>

using namespace gpuemu::test;

namespace {

class DriverTest : public StreamsTest {};

TEST_F(DriverTest, NothingRunsBeforeTheHostWaits) {
  Pinned host(32);
  Buffer buffer(size_t(128));
  host.data[0] = 1;
  check(cuMemcpyHtoDAsync_v2(buffer.address, host.data, 128, streams[0]));
  host.data[0] = 2; // pinned memory is read when the stream gets there
  Kernel kernel(increment);
  check(kernel.launch({&buffer.address}, 32, 1, 0, streams[0]));
  uint64_t launches = cuEmuCount("launches");
  check(cuMemcpyDtoHAsync_v2(host.data, buffer.address, 128, streams[0]));
  EXPECT_EQ(host.data[0], 2u);
  EXPECT_EQ(cuEmuCount("launches"), launches);
  check(cuStreamSynchronize(streams[0]));
  EXPECT_EQ(host.data[0], 3u);
  EXPECT_EQ(cuEmuCount("launches"), launches + 1);
}

TEST_F(DriverTest, FloatsOfTheCallingThreadAreItsOwn) {
  // x / 2 + (x - x)
  Kernel kernel(kernelText(
      1, "  .reg .b64 %d;\n  .reg .f32 %f<3>;\n",
      "  mad.wide.u32 %d, %thread, 4, %p0;\n  ld.global.f32 %f0, [%d];\n"
      "  mul.f32 %f1, %f0, 0f3F000000;\n  sub.f32 %f2, %f0, %f0;\n"
      "  add.f32 %f1, %f1, %f2;\n  st.global.f32 [%d], %f1;\n"));
  std::vector<float> values(32, FLT_MIN);
  values[1] = std::numeric_limits<float>::infinity();
  Buffer buffer(values);
  const unsigned before = _mm_getcsr();
  _mm_setcsr((before & ~unsigned(_MM_EXCEPT_MASK)) | 0x8040); // FTZ and DAZ
  const unsigned mine = _mm_getcsr();
  const CUresult launched =
      kernel.launch({&buffer.address}, 32, 1, 0, streams[0]);
  const CUresult done = cuStreamSynchronize(streams[0]);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  check(launched);
  check(done);
  EXPECT_EQ(after, mine);
  const std::vector<float> got = buffer.read<float>();
  EXPECT_EQ(got[0], FLT_MIN / 2);
  EXPECT_NE(got[1], got[1]);
}

TEST_F(DriverTest, ValuesAreWrittenInTheOrderOfAStream) {
  Pinned host(2);
  Buffer there(std::vector<uint32_t>{0});
  Kernel kernel(increment);
  Buffer words(std::vector<uint32_t>(32));
  const auto address = reinterpret_cast<CUdeviceptr>(host.data);
  check(kernel.launch({&words.address}, 32, 1, 0, streams[0]));
  check(cuStreamWriteValue32_v2(streams[0], address, 7, 0));
  check(cuStreamWriteValue32_v2(streams[0], there.address, 9, 0));
  EXPECT_EQ(host.data[0], 0u);
  check(cuStreamSynchronize(streams[0]));
  EXPECT_EQ(host.data[0], 7u);
  EXPECT_EQ(there.read<uint32_t>()[0], 9u);
  uint32_t pageable = 0;
  for (CUdeviceptr wrong :
       {address + 2, reinterpret_cast<CUdeviceptr>(&pageable)})
    EXPECT_EQ(cuStreamWriteValue32_v2(streams[0], wrong, 1, 0),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, PageableMemoryIsReadAtOnce) {
  Buffer buffer(size_t(4));
  uint32_t word = 1;
  check(cuMemcpyHtoDAsync_v2(buffer.address, &word, 4, streams[0]));
  word = 2;
  uint64_t waits = cuEmuCount("synchronisations");
  // Writing it waits, which is counted.
  check(cuMemcpyDtoHAsync_v2(&word, buffer.address, 4, streams[0]));
  EXPECT_EQ(word, 1u);
  EXPECT_EQ(cuEmuCount("synchronisations"), waits + 1);
}

/// One stream writes, another reads. Whether the reader found the new words.
bool readsAfterWrite(CUstream writer, CUstream reader, CUevent event,
                     bool waits) {
  Buffer from(std::vector<uint32_t>(32)), to(std::vector<uint32_t>(32));
  Kernel write(increment), read(copyWords);
  check(write.launch({&from.address}, 32, 1, 0, writer));
  check(cuEventRecord(event, writer));
  if (waits)
    check(cuStreamWaitEvent(reader, event, 0));
  check(read.launch({&from.address, &to.address}, 32, 1, 0, reader));
  check(cuStreamSynchronize(reader));
  check(cuStreamSynchronize(writer));
  return to.read<uint32_t>()[5] == 1;
}

TEST_F(DriverTest, AForgottenWaitGivesWrongResults) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    cuEmuSeed(seed);
    EXPECT_TRUE(readsAfterWrite(streams[0], streams[1], event, true));
    wrong += !readsAfterWrite(streams[0], streams[1], event, false);
  }
  EXPECT_GT(wrong, 5);
}

TEST_F(DriverTest, TheSameSeedDrawsTheSameOrder) {
  auto order = [&](uint64_t seed) {
    cuEmuSeed(seed);
    std::vector<int> seen;
    struct Note {
      std::vector<int> *seen;
      int number;
    } notes[12];
    for (int i = 0; i < 12; ++i) {
      notes[i] = {&seen, i};
      check(cuLaunchHostFunc(
          streams[i % 2],
          [](void *data) {
            Note &note = *static_cast<Note *>(data);
            note.seen->push_back(note.number);
          },
          &notes[i]));
    }
    check(cuCtxSynchronize());
    return seen;
  };
  bool differs = false;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    std::vector<int> first = order(seed);
    EXPECT_EQ(order(seed), first);
    ASSERT_EQ(first.size(), 12u);
    // A stream's own order stays.
    for (int parity : {0, 1}) {
      int last = -1;
      for (int number : first)
        if (number % 2 == parity) {
          EXPECT_GT(number, last);
          last = number;
        }
    }
    differs |= first != order(seed + 1);
  }
  EXPECT_TRUE(differs);
}

TEST_F(DriverTest, QueriesLetOperationsRun) {
  cuEmuSeed(3);
  Buffer buffer(std::vector<uint32_t>(32));
  Kernel kernel(increment);
  for (int i = 0; i < 10; ++i)
    check(kernel.launch({&buffer.address}, 32, 1, 0, streams[0]));
  check(cuEventRecord(event, streams[0]));
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  int queries = 0;
  while (cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY)
    ASSERT_LT(++queries, 1000);
  EXPECT_GT(queries, 2);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(buffer.read<uint32_t>()[31], 10u);
}

TEST_F(DriverTest, TheNullStreamWaitsForBlockingStreams) {
  CUstream blocking = nullptr;
  check(cuStreamCreate(&blocking, 0));
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    cuEmuSeed(seed);
    Buffer from(std::vector<uint32_t>(32)), to(std::vector<uint32_t>(32));
    Kernel write(increment), read(copyWords);
    check(write.launch({&from.address}, 32, 1, 0, blocking));
    check(read.launch({&from.address, &to.address}));
    check(write.launch({&to.address}, 32, 1, 0, blocking));
    check(cuStreamSynchronize(blocking));
    EXPECT_EQ(to.read<uint32_t>()[7], 2u);
  }
  check(cuStreamDestroy_v2(blocking));
}

TEST_F(DriverTest, EventsMeasureTime) {
  CUevent end = nullptr, silent = nullptr;
  check(cuEventCreate(&end, 0));
  check(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
  float milliseconds = -1;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, event, end),
            CUDA_ERROR_INVALID_HANDLE);
  check(cuEventRecord(event, streams[0]));
  check(cuLaunchHostFunc(
      streams[0],
      [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); },
      nullptr));
  check(cuEventRecord(end, streams[0]));
  check(cuEventRecord(silent, streams[0]));
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, event, end),
            CUDA_ERROR_NOT_READY);
  check(cuEventSynchronize(end));
  check(cuEventElapsedTime_v2(&milliseconds, event, end));
  EXPECT_GE(milliseconds, 3);
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, event, silent),
            CUDA_ERROR_INVALID_HANDLE);
  check(cuEventDestroy_v2(end));
  check(cuEventDestroy_v2(silent));
}

TEST_F(DriverTest, CopiesOfRowsAndPlanes) {
  std::vector<uint8_t> host(60), back(60, 0xee);
  for (size_t i = 0; i < 60; ++i)
    host[i] = uint8_t(i);
  Buffer buffer(size_t(120));
  check(cuMemsetD8_v2(buffer.address, 0, 120));
  CUDA_MEMCPY2D rows = {};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = host.data();
  rows.srcPitch = 10;
  rows.srcXInBytes = 2;
  rows.srcY = 1;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = buffer.address;
  rows.dstPitch = 16;
  rows.WidthInBytes = 4;
  rows.Height = 3;
  check(cuMemcpy2DAsync_v2(&rows, streams[0]));
  check(cuStreamSynchronize(streams[0]));
  std::vector<uint8_t> out = buffer.read<uint8_t>();
  for (size_t y = 0; y < 3; ++y)
    for (size_t x = 0; x < 4; ++x)
      EXPECT_EQ(out[16 * y + x], 10 * (y + 1) + x + 2);
  EXPECT_EQ(out[4], 0);
  CUDA_MEMCPY3D cube = {};
  cube.srcMemoryType = CU_MEMORYTYPE_HOST;
  cube.srcHost = host.data();
  cube.srcPitch = 5;
  cube.srcHeight = 4;
  cube.srcZ = 1;
  cube.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  cube.dstDevice = buffer.address;
  cube.dstPitch = 8;
  cube.dstHeight = 4;
  cube.WidthInBytes = 5;
  cube.Height = 2;
  cube.Depth = 2;
  check(cuMemcpy3D_v2(&cube));
  out = buffer.read<uint8_t>();
  for (size_t z = 0; z < 2; ++z)
    for (size_t y = 0; y < 2; ++y)
      for (size_t x = 0; x < 5; ++x)
        EXPECT_EQ(out[32 * z + 8 * y + x], 20 * (z + 1) + 5 * y + x);
  check(cuMemsetD2D8Async(buffer.address, 16, 9, 3, 2, streams[0]));
  check(cuStreamSynchronize(streams[0]));
  out = buffer.read<uint8_t>();
  EXPECT_EQ(out[2], 9);
  EXPECT_EQ(out[18], 9);
  EXPECT_NE(out[19], 9);
  check(cuMemsetD32_v2(buffer.address, 0x01020304, 30));
  EXPECT_EQ(buffer.read<uint32_t>()[29], 0x01020304u);
  rows.dstPitch = 3;
  EXPECT_EQ(cuMemcpy2D_v2(&rows), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(buffer.address + 100, host.data(), 60),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, MemoryOfTwoDevices) {
  CUcontext first = nullptr, second = nullptr;
  check(cuCtxGetCurrent(&first));
  check(cuDevicePrimaryCtxRetain(&second, 1));
  size_t free = 0, total = 0;
  check(cuMemGetInfo_v2(&free, &total));
  EXPECT_EQ(total, size_t(64) << 20);
  Buffer near(std::vector<uint32_t>{1, 2, 3, 4});
  size_t less = 0;
  check(cuMemGetInfo_v2(&less, nullptr));
  EXPECT_EQ(less, free - 512);
  check(cuCtxSetCurrent(second));
  check(cuMemGetInfo_v2(&less, nullptr));
  EXPECT_EQ(less, total);
  CUdeviceptr far = 0;
  EXPECT_EQ(cuMemAlloc_v2(&far, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(std::string(cuEmuLastError()).find(std::to_string(total)),
            std::string::npos);
  check(cuMemAlloc_v2(&far, 16));
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const uint64_t peers = cuEmuCount("peer-copies"),
                 staged = cuEmuCount("staged-copies");
  check(cuMemcpyPeerAsync(far, second, near.address, first, 16, stream));
  EXPECT_EQ(cuEmuCount("staged-copies"), staged + 1);
  check(cuCtxEnablePeerAccess(first, 0));
  check(cuCtxSetCurrent(first));
  check(cuCtxEnablePeerAccess(second, 0));
  check(cuCtxSetCurrent(second));
  check(cuMemcpyPeerAsync(far, second, near.address, first, 16, stream));
  EXPECT_EQ(cuEmuCount("staged-copies"), staged + 1);
  EXPECT_EQ(cuEmuCount("peer-copies"), peers + 2);
  check(cuStreamSynchronize(stream));
  uint32_t words[4];
  check(cuMemcpyDtoH_v2(words, far, 16));
  EXPECT_EQ(words[3], 4u);
  int ordinal = -1;
  check(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                              far));
  EXPECT_EQ(ordinal, 1);
  EXPECT_EQ(cuMemFree_v2(far + 4), CUDA_ERROR_INVALID_VALUE);
  check(cuStreamDestroy_v2(stream));
  check(cuMemFree_v2(far));
  check(cuDevicePrimaryCtxRelease_v2(1));
  check(cuCtxSetCurrent(first));
  check(cuCtxDisablePeerAccess(second));
}

TEST_F(DriverTest, LaunchesThatAreNotPossible) {
  Kernel kernel(kernelText(0, "  .reg .b64 %d;\n", "  mov.u64 %d, dynamic;\n",
                           ".extern .shared .align 16 .b8 dynamic[];\n"));
  EXPECT_EQ(kernel.launch({}, 1025), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(kernel.launch({}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(kernel.launch({}, 32, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(kernel.launch({}, 32, 1, 49153), CUDA_ERROR_INVALID_VALUE);
  check(cuFuncSetAttribute(
      kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
  EXPECT_EQ(kernel.launch({}, 32, 1, 49153), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetAttribute(kernel.function,
                               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               1 << 20),
            CUDA_ERROR_INVALID_VALUE);
  int blocks = 0;
  check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function,
                                                    256, 0));
  EXPECT_EQ(blocks, 8);
  check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function,
                                                    256, 65536));
  EXPECT_EQ(blocks, 3);
  CUfunction other = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&other, kernel.module, "no"),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuStreamSynchronize(reinterpret_cast<CUstream>(12345)),
            CUDA_ERROR_INVALID_HANDLE);
}

/// A small program; the first error that it meets. What it made it gives back.
CUresult program(int &calls) {
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUresult first = CUDA_SUCCESS;
  auto step = [&](CUresult result) {
    ++calls;
    if (!first)
      first = result;
    return first == CUDA_SUCCESS;
  };
  void *parameters[] = {&address};
  uint32_t words[32] = {};
  (void)(step(cuMemAlloc_v2(&address, 128)) &&
         step(cuStreamCreate(&stream, 0)) &&
         step(cuModuleLoadData(&module, increment.c_str())) &&
         step(cuModuleGetFunction(&function, module, "k")) &&
         step(cuMemcpyHtoD_v2(address, words, 128)) &&
         step(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters,
                             nullptr)) &&
         step(cuStreamSynchronize(stream)) &&
         step(cuMemcpyDtoH_v2(words, address, 128)));
  if (module)
    step(cuModuleUnload(module));
  if (stream)
    step(cuStreamDestroy_v2(stream));
  if (address)
    step(cuMemFree_v2(address));
  return first;
}

TEST_F(DriverTest, EachCallIsMadeToFailOnce) {
  int calls = 0, unused = 0;
  ASSERT_EQ(program(calls), CUDA_SUCCESS);
  EXPECT_EQ(calls, 11);
  for (int i = 1; i <= calls; ++i) {
    uint64_t streamsBefore = cuEmuCount("live-streams");
    cuEmuFail(uint64_t(i), 0);
    CUresult result = program(unused);
    EXPECT_TRUE(result == CUDA_ERROR_OUT_OF_MEMORY ||
                result == CUDA_ERROR_LAUNCH_FAILED)
        << i << ": " << result;
    EXPECT_NE(std::string(cuEmuLastError()).find("was made to fail"),
              std::string::npos);
    EXPECT_EQ(cuEmuCount("live-allocations"), 0u) << i;
    EXPECT_EQ(cuEmuCount("live-modules"), 0u) << i;
    EXPECT_EQ(cuEmuCount("live-streams"), streamsBefore) << i;
    check(cuDevicePrimaryCtxReset_v2(0));
  }
  cuEmuFail(2, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(program(unused), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DriverTest, WaitsThatNeverEndAreErrors) {
  CuEmuOperation never = {"a rendezvous", [](void *) { return 0; },
                          [](void *) -> const char * { return nullptr; },
                          nullptr, nullptr};
  ASSERT_EQ(cuEmuEnqueue(streams[0], &never), 0);
  EXPECT_EQ(cuStreamSynchronize(streams[0]), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_NE(std::string(cuEmuLastError()).find("a rendezvous"),
            std::string::npos);
}

TEST_F(DriverTest, FunctionsByName) {
  void *function = nullptr;
  CUdriverProcAddressQueryResult found;
  check(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &found));
  EXPECT_EQ(function, reinterpret_cast<void *>(&cuMemAlloc_v2));
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(cuGetProcAddress_v2("cuNothing", &function, 12000, 0, &found),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const char *name = nullptr;
  check(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(DriverTest, ThreadsNeedAContext) {
  CUresult result = CUDA_SUCCESS;
  std::thread([&] {
    CUdeviceptr address = 0;
    result = cuMemAlloc_v2(&address, 4);
  }).join();
  EXPECT_EQ(result, CUDA_ERROR_INVALID_CONTEXT);
}

} // namespace

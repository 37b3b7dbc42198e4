//===- GraphTest.cpp - Captures, and the graphs of them -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

#include <thread>

using namespace gpuemu::test;

namespace {

using Words = std::vector<uint32_t>;

class GraphTest : public StreamsTest {
protected:
  /// What `record` enqueues in the first stream, as a graph.
  template <typename F> CUgraphExec capture(F record) {
    check(cuStreamBeginCapture_v2(streams[0],
                                  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    record();
    CUgraph graph = nullptr;
    check(cuStreamEndCapture(streams[0], &graph));
    CUgraphExec exec = nullptr;
    check(cuGraphInstantiateWithFlags(&exec, graph, 0));
    check(cuGraphDestroy(graph));
    check(cuGraphUpload(exec, streams[1]));
    return exec;
  }

  /// Ends a capture that a call has made invalid.
  void expectInvalid() {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(streams[0], &graph),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    check(cuStreamQuery(streams[0]));
  }
};

TEST_F(GraphTest, GraphsOfSeveralStreams) {
  Buffer from(std::vector<uint32_t>(32)), to(std::vector<uint32_t>(32));
  Kernel write(increment), read(copyWords);
  CUevent joined = nullptr;
  check(cuEventCreate(&joined, 0));
  check(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
  check(write.launch({&from.address}, 32, 1, 0, streams[0]));
  check(cuEventRecord(event, streams[0]));
  check(cuStreamWaitEvent(streams[1], event, 0));
  check(read.launch({&from.address, &to.address}, 32, 1, 0, streams[1]));
  check(cuEventRecord(joined, streams[1]));
  check(cuStreamWaitEvent(streams[0], joined, 0));
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(streams[0], &graph));
  size_t nodes = 0;
  check(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2u);
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0));
  check(cuGraphDestroy(graph));
  EXPECT_EQ(from.read<uint32_t>()[0], 0u) << "a capture runs nothing";
  for (uint64_t seed = 0; seed < 5; ++seed) {
    cuEmuSeed(seed);
    check(cuGraphLaunch(exec, streams[0]));
    check(cuGraphLaunch(exec, streams[1]));
    check(cuCtxSynchronize());
    EXPECT_EQ(to.read<uint32_t>()[9], 2 * seed + 2);
  }
  check(cuGraphExecDestroy(exec));
  check(cuEventDestroy_v2(joined));
}

TEST_F(GraphTest, CapturesThatAreNotAllowed) {
  CUgraph graph = nullptr;
  CUdeviceptr address = 0;
  check(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(streams[0], &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(cuStreamSynchronize(streams[0]),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(streams[0], &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // Work of another stream that nothing joins.
  check(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
  check(cuEventRecord(event, streams[0]));
  check(cuStreamWaitEvent(streams[1], event, 0));
  check(cuLaunchHostFunc(streams[1], [](void *) {}, nullptr));
  EXPECT_EQ(cuStreamEndCapture(streams[1], &graph),
            CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(streams[0], &graph),
            CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  // An event from before the capture.
  check(cuEventRecord(event, streams[1]));
  check(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuStreamWaitEvent(streams[0], event, 0),
            CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(cuStreamEndCapture(streams[0], &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
}

// Each makes the capture invalid.
TEST_F(GraphTest, CallsThatACaptureForbids) {
  Pinned pinned(32);
  uint32_t pageable[32] = {};
  Buffer buffer{Words(32)};
  CUevent before = nullptr;
  check(cuEventCreate(&before, 0));
  auto expectForbidden = [&](CUresult expected, auto call) {
    check(cuStreamBeginCapture_v2(streams[0],
                                  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    check(cuEventRecord(event, streams[0]));
    EXPECT_EQ(call(), expected);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    check(cuStreamIsCapturing(streams[0], &status));
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(cuMemsetD8Async(buffer.address, 1, 128, streams[0]),
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    expectInvalid();
  };
  const CUresult unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  expectForbidden(unsupported, [&] { return cuStreamQuery(streams[0]); });
  expectForbidden(unsupported, [&] { return cuCtxSynchronize(); });
  expectForbidden(unsupported, [&] { return cuMemFree_v2(buffer.address); });
  expectForbidden(unsupported, [&] {
    return cuMemcpyHtoD_v2(buffer.address, pageable, 128);
  });
  expectForbidden(unsupported, [&] {
    return cuMemcpyHtoDAsync_v2(buffer.address, pageable, 128, streams[0]);
  });
  expectForbidden(unsupported, [&] {
    CUmodule module = nullptr;
    return cuModuleLoadData(&module, increment.c_str());
  });
  expectForbidden(CUDA_ERROR_CAPTURED_EVENT,
                  [&] { return cuEventQuery(event); });
  expectForbidden(CUDA_ERROR_CAPTURED_EVENT,
                  [&] { return cuEventSynchronize(event); });
  expectForbidden(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, [&] {
    check(cuEventRecord(before, streams[1]));
    return cuStreamWaitEvent(streams[0], before, 0);
  });
  check(cuEventDestroy_v2(before));

  // The null stream would wait for a blocking one.
  CUstream blocking = nullptr;
  CUgraph graph = nullptr;
  check(cuStreamCreate(&blocking, 0));
  check(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuMemsetD8Async(buffer.address, 1, 128, nullptr),
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(cuStreamEndCapture(blocking, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  check(cuStreamDestroy_v2(blocking));

  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED),
            unsupported);
  EXPECT_EQ(cuStreamEndCapture(streams[0], &graph), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphTest, OtherThreadsMayAllocateUnlessTheCaptureIsGlobal) {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context));
  CUgraph graph = nullptr;
  for (bool global : {false, true}) {
    check(cuStreamBeginCapture_v2(
        streams[0], global ? CU_STREAM_CAPTURE_MODE_GLOBAL
                           : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CUresult allocated = CUDA_SUCCESS, ended = CUDA_SUCCESS;
    std::thread([&] {
      cuCtxSetCurrent(context);
      CUdeviceptr address = 0;
      allocated = cuMemAlloc_v2(&address, 4);
      if (!allocated)
        cuMemFree_v2(address);
      ended = cuStreamEndCapture(streams[0], &graph);
    }).join();
    EXPECT_EQ(allocated,
              global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    EXPECT_EQ(ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(cuStreamEndCapture(streams[0], &graph),
              global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    if (graph)
      check(cuGraphDestroy(graph));
  }
}

// Parameters are those of the capture, bytes are those of the launch.
TEST_F(GraphTest, ReadsParametersOnceAndMemoryAtEachLaunch) {
  Pinned host(32);
  Buffer from(size_t(128)), to{Words(32)}, other { Words(32) };
  Kernel add(increment), move(copyWords);
  CUdeviceptr target = to.address;
  CUgraphExec exec = capture([&] {
    check(cuMemcpyHtoDAsync_v2(from.address, host.data, 128, streams[0]));
    check(add.launch({&from.address}, 32, 1, 0, streams[0]));
    check(move.launch({&from.address, &target}, 32, 1, 0, streams[0]));
    check(cuMemsetD8Async(from.address, 0, 128, streams[0]));
  });
  target = other.address;
  const uint64_t launches = cuEmuCount("launches");
  for (uint32_t round = 0; round < 8; ++round) {
    cuEmuSeed(round);
    host.data[3] = 10 * round;
    check(cuGraphLaunch(exec, streams[1]));
    EXPECT_EQ(cuEmuCount("launches"), launches + 2 * round);
    check(cuStreamSynchronize(streams[1]));
    EXPECT_EQ(to.read<uint32_t>()[3], 10 * round + 1);
  }
  EXPECT_EQ(other.read<uint32_t>(), Words(32));
  EXPECT_EQ(from.read<uint32_t>(), Words(32));
  check(cuGraphExecDestroy(exec));
}

TEST_F(GraphTest, LaunchesOfOneGraphFollowOneAnother) {
  Buffer count{Words(32)}, between{Words(32)};
  Kernel add(increment), move(copyWords);
  // Goes wrong where two launches mix.
  CUgraphExec exec = capture([&] {
    check(
        move.launch({&count.address, &between.address}, 32, 1, 0, streams[0]));
    check(add.launch({&between.address}, 32, 1, 0, streams[0]));
    check(
        move.launch({&between.address, &count.address}, 32, 1, 0, streams[0]));
    check(cuMemsetD8Async(between.address, 0, 128, streams[0]));
  });
  uint32_t expected = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    cuEmuSeed(seed);
    for (int i = 0; i < 3; ++i)
      for (CUstream stream : streams)
        check(cuGraphLaunch(exec, stream));
    // The last launch comes after those in the other stream.
    check(cuStreamSynchronize(streams[1]));
    expected += 6;
    EXPECT_EQ(count.read<uint32_t>()[8], expected) << "seed " << seed;
  }
  check(cuGraphExecDestroy(exec));
}

TEST_F(GraphTest, WhatIsDestroyedIsNotLaunched) {
  Buffer buffer{Words(32)};
  Kernel add(increment);
  const uint64_t before = cuEmuCount("live-graphs");
  CUgraphExec exec = capture(
      [&] { check(add.launch({&buffer.address}, 32, 1, 0, streams[0])); });
  EXPECT_EQ(cuEmuCount("live-graphs"), before + 1);
  check(cuGraphLaunch(exec, streams[0]));
  // What was launched still runs.
  check(cuGraphExecDestroy(exec));
  EXPECT_EQ(cuGraphLaunch(exec, streams[0]), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphUpload(exec, streams[0]), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
  check(cuStreamSynchronize(streams[0]));
  EXPECT_EQ(buffer.read<uint32_t>()[0], 1u);
  EXPECT_EQ(cuEmuCount("live-graphs"), before);
}

TEST_F(GraphTest, ACaptureEndsWithItsStream) {
  CUstream origin = nullptr;
  check(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
  check(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  check(cuEventRecord(event, origin));
  check(cuStreamWaitEvent(streams[1], event, 0));
  check(cuStreamDestroy_v2(origin));
  check(cuStreamSynchronize(streams[1]));
  check(cuCtxSynchronize());
}

} // namespace

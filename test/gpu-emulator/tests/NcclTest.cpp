//===- NcclTest.cpp - Collectives between the devices -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nccl/Nccl.h"
#include "tests/Harness.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace gpuemu::test;

namespace {

/// Two devices, each with a communicator, a stream and two buffers of 8 words.
class NcclTest : public EmulatorTest {
protected:
  struct Rank {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    ncclComm_t comm = nullptr;
    CUdeviceptr from = 0, to = 0;
    void *in() const { return reinterpret_cast<void *>(from); }
    void *out() const { return reinterpret_cast<void *>(to); }
  };
  Rank ranks[2];

  void SetUp() override {
    EmulatorTest::SetUp();
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int i = 0; i < 2; ++i) {
      Rank &rank = ranks[i];
      check(cuDevicePrimaryCtxRetain(&rank.context, i));
      check(cuCtxSetCurrent(rank.context));
      check(cuStreamCreate(&rank.stream, CU_STREAM_NON_BLOCKING));
      check(cuMemAlloc_v2(&rank.from, 32));
      check(cuMemAlloc_v2(&rank.to, 32));
      std::vector<float> values;
      for (int j = 0; j < 8; ++j)
        values.push_back(float(10 * i + j));
      check(cuMemcpyHtoD_v2(rank.from, values.data(), 32));
      check(cuMemsetD8_v2(rank.to, 0, 32));
      ASSERT_EQ(ncclCommInitRank(&rank.comm, 2, id, i), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  }
  void TearDown() override {
    cuEmuSeed(0);
    for (int i = 0; i < 2; ++i) {
      Rank &rank = ranks[i];
      check(cuCtxSetCurrent(rank.context));
      ncclCommDestroy(rank.comm);
      cuStreamDestroy_v2(rank.stream);
      cuMemFree_v2(rank.from);
      cuMemFree_v2(rank.to);
      check(cuDevicePrimaryCtxRelease_v2(i));
    }
    check(cuCtxSetCurrent(ranks[0].context));
    EmulatorTest::TearDown();
  }

  /// f(rank) for each rank, with its context; then what both have received.
  template <typename F> std::vector<std::vector<float>> run(F f) {
    for (Rank &rank : ranks) {
      check(cuCtxSetCurrent(rank.context));
      EXPECT_EQ(f(rank), ncclSuccess) << ncclGetLastError(nullptr);
    }
    std::vector<std::vector<float>> results;
    for (Rank &rank : ranks) {
      check(cuCtxSetCurrent(rank.context));
      check(cuStreamSynchronize(rank.stream));
      results.emplace_back(8);
      check(cuMemcpyDtoH_v2(results.back().data(), rank.to, 32));
    }
    return results;
  }
};

using Words = std::vector<float>;

TEST_F(NcclTest, Collectives) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    cuEmuSeed(seed);
    auto sums = run([](Rank &r) {
      return ncclAllReduce(r.in(), r.out(), 8, ncclFloat32, ncclSum, r.comm,
                           r.stream);
    });
    for (const Words &words : sums)
      EXPECT_EQ(words, (Words{10, 12, 14, 16, 18, 20, 22, 24}));
    auto parts = run([](Rank &r) {
      return ncclReduceScatter(r.in(), r.out(), 4, ncclFloat32, ncclMax, r.comm,
                               r.stream);
    });
    EXPECT_EQ(parts[0], (Words{10, 11, 12, 13, 18, 20, 22, 24}));
    EXPECT_EQ(parts[1], (Words{14, 15, 16, 17, 18, 20, 22, 24}));
    auto whole = run([](Rank &r) {
      return ncclAllGather(r.in(), r.out(), 4, ncclFloat32, r.comm, r.stream);
    });
    for (const Words &words : whole)
      EXPECT_EQ(words, (Words{0, 1, 2, 3, 10, 11, 12, 13}));
    auto same = run([](Rank &r) {
      return ncclBroadcast(r.in(), r.out(), 8, ncclFloat32, 1, r.comm,
                           r.stream);
    });
    EXPECT_EQ(same[0], (Words{10, 11, 12, 13, 14, 15, 16, 17}));
    auto mean = run([](Rank &r) {
      return ncclReduce(r.in(), r.out(), 8, ncclFloat32, ncclAvg, 0, r.comm,
                        r.stream);
    });
    EXPECT_EQ(mean[0], (Words{5, 6, 7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(mean[1], same[1]);
  }
}

TEST_F(NcclTest, SendsAndReceivesOfAGroupGoOnTogether) {
  auto swapped = run([&](Rank &r) {
    int peer = &r == &ranks[0] ? 1 : 0;
    ncclGroupStart();
    ncclSend(r.in(), 8, ncclFloat32, peer, r.comm, r.stream);
    ncclRecv(r.out(), 8, ncclFloat32, peer, r.comm, r.stream);
    return ncclGroupEnd();
  });
  EXPECT_EQ(swapped[0][3], 13);
  EXPECT_EQ(swapped[1][3], 3);
}

TEST_F(NcclTest, ARankThatIsMissingIsAnError) {
  check(cuCtxSetCurrent(ranks[0].context));
  ASSERT_EQ(ncclAllReduce(ranks[0].in(), ranks[0].out(), 8, ncclFloat32,
                          ncclSum, ranks[0].comm, ranks[0].stream),
            ncclSuccess);
  EXPECT_EQ(cuStreamSynchronize(ranks[0].stream), CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_F(NcclTest, RanksThatDisagree) {
  for (int i = 0; i < 2; ++i) {
    check(cuCtxSetCurrent(ranks[i].context));
    ASSERT_EQ(ncclAllReduce(ranks[i].in(), ranks[i].out(), size_t(8 - i),
                            ncclFloat32, ncclSum, ranks[i].comm,
                            ranks[i].stream),
              ncclSuccess);
  }
  EXPECT_EQ(cuStreamSynchronize(ranks[1].stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(std::string(cuEmuLastError()).find("different calls"),
            std::string::npos);
}

TEST_F(NcclTest, GraphsRepeatCollectives) {
  CUgraphExec execs[2];
  for (int i = 0; i < 2; ++i) {
    Rank &r = ranks[i];
    check(cuCtxSetCurrent(r.context));
    check(cuStreamBeginCapture_v2(r.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    // The second starts from the result of the first.
    ncclAllReduce(r.in(), r.in(), 8, ncclFloat32, ncclSum, r.comm, r.stream);
    ncclAllReduce(r.in(), r.out(), 8, ncclFloat32, ncclSum, r.comm, r.stream);
    CUgraph graph = nullptr;
    check(cuStreamEndCapture(r.stream, &graph));
    check(cuGraphInstantiateWithFlags(&execs[i], graph, 0));
    check(cuGraphDestroy(graph));
  }
  for (int times = 0; times < 2; ++times)
    for (int i = 0; i < 2; ++i) {
      check(cuCtxSetCurrent(ranks[i].context));
      check(cuGraphLaunch(execs[i], ranks[i].stream));
    }
  auto results = run([](Rank &) { return ncclSuccess; });
  for (const Words &words : results) // (0 + 10) 2, and that again
    EXPECT_EQ(words[0], 40);
  for (int i = 0; i < 2; ++i) {
    check(cuCtxSetCurrent(ranks[i].context));
    check(cuGraphExecDestroy(execs[i]));
  }
}

// An abort waits for the kernels of other communicators on its device.
TEST_F(NcclTest, AbortsWaitForTheDevice) {
  check(cuCtxSetCurrent(ranks[0].context));
  for (bool inGroup : {true, false}) {
    ncclComm_t comms[2];
    CUstream streams[2];
    for (int i = 0; i < 2; ++i) {
      ncclUniqueId id;
      ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
      ncclComm_t other = nullptr;
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(ncclCommInitRank(&comms[i], 2, id, 0), ncclSuccess);
      check(cuCtxSetCurrent(ranks[1].context));
      ASSERT_EQ(ncclCommInitRank(&other, 2, id, 1), ncclSuccess);
      check(cuCtxSetCurrent(ranks[0].context));
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      check(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
      // The other rank does not come.
      ASSERT_EQ(ncclAllReduce(ranks[0].in(), ranks[0].out(), 8, ncclFloat32,
                              ncclSum, comms[i], streams[i]),
                ncclSuccess);
      cuEmuAdvance(streams[i]);
      ASSERT_EQ(ncclCommDestroy(other), ncclSuccess);
    }
    if (inGroup) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (ncclComm_t comm : comms)
        ASSERT_EQ(ncclCommAbort(comm), ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    } else {
      std::atomic<bool> isDone = false;
      std::thread first([&] {
        EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
        isDone = true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_FALSE(isDone);
      EXPECT_EQ(ncclCommAbort(comms[1]), ncclSuccess);
      first.join();
    }
    for (CUstream stream : streams) {
      check(cuStreamSynchronize(stream));
      check(cuStreamDestroy_v2(stream));
    }
  }
}

TEST_F(NcclTest, WrongArguments) {
  check(cuCtxSetCurrent(ranks[0].context));
  EXPECT_EQ(ncclSend(ranks[0].in(), 8, ncclFloat32, 2, ranks[0].comm,
                     ranks[0].stream),
            ncclInvalidArgument);
  EXPECT_EQ(ncclSend(ranks[0].in(), 8, ncclFloat32, 1, ranks[0].comm,
                     ranks[1].stream),
            ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

} // namespace

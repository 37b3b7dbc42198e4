//===- LocalCollectiveTest.cpp - Collectives between threads --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"
#include "test/unit/comm/CollectiveCases.h"

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace partita::test {
namespace {

using namespace partita::runtime;

CollectiveCase sumOf(int64_t part, std::vector<std::vector<int>> groups) {
  return {{CollectiveKind::all_reduce, Reduction::sum, abi::DType::f32, 1, part,
           std::move(groups)},
          false};
}

/// Calls `body` for each device, in a thread of its own.
void onDevices(int devices, const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int device = 0; device < devices; ++device)
    threads.emplace_back(body, device);
  for (std::thread &thread : threads)
    thread.join();
}

void expectResult(const CollectiveCase &of, const std::vector<Bytes> &sources,
                  int rank, const Buffers &buffers) {
  EXPECT_TRUE(
      agree(of.info.dtype, expectedOf(of, sources, rank), buffers.results()))
      << nameOf(of) << ", device " << rank << " of its group";
  EXPECT_TRUE(buffers.sourceIsUnchanged()) << nameOf(of);
}

class AllCases : public testing::TestWithParam<int> {};

TEST_P(AllCases, GiveWhatPlainLoopsGive) {
  const int devices = GetParam();
  const std::vector<CollectiveCase> cases = allCases(devices);
  LocalCommunicator comm({}, 1, 60, devices == 2, infosOf(cases));
  // By case and device.
  std::vector<std::vector<Bytes>> sources;
  std::vector<std::vector<Buffers>> buffers(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    sources.push_back(sourcesOf(cases[i], 0, 0));
    for (int device = 0; device < devices; ++device)
      buffers[i].emplace_back(cases[i], sources[i], device);
  }
  onDevices(devices, [&](int device) {
    for (size_t i = 0; i < cases.size(); ++i) {
      Buffers &mine = buffers[i][size_t(device)];
      Status status =
          comm.start(int(i), device, 0, mine.source(), mine.target());
      ASSERT_TRUE(status.ok()) << status.message();
      status = comm.finish(int(i), device, 0);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  });
  for (size_t i = 0; i < cases.size(); ++i)
    for (int device = 0; device < devices; ++device) {
      const Buffers &mine = buffers[i][size_t(device)];
      expectResult(cases[i], sources[i], device, mine);
      // NaN included.
      if (cases[i].info.kind == CollectiveKind::all_reduce)
        EXPECT_EQ(mine.results(), buffers[i][0].results()) << nameOf(cases[i]);
    }
}

INSTANTIATE_TEST_SUITE_P(LocalCollective, AllCases,
                         testing::Values(1, 2, 3, 4, 8));

TEST(LocalCollective, GroupsAreApartAndInTheirOrder) {
  std::vector<CollectiveCase> cases;
  for (CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather,
        CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
        CollectiveKind::broadcast})
    for (int64_t part : {7, 5000})
      cases.push_back({{kind,
                        Reduction::sum,
                        abi::DType::f32,
                        2,
                        part,
                        {{4, 1, 2}, {0, 3}}},
                       false});
  LocalCommunicator comm({}, 1, 60, true, infosOf(cases));
  onDevices(5, [&](int device) {
    const int group = device == 0 || device == 3;
    const int rank = device == 4 || device == 0 ? 0 : device == 2 ? 2 : 1;
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::vector<Bytes> sources = sourcesOf(cases[i], group, 0);
      Buffers mine(cases[i], sources, rank);
      ASSERT_TRUE(
          comm.start(int(i), device, 0, mine.source(), mine.target()).ok());
      ASSERT_TRUE(comm.finish(int(i), device, 0).ok());
      expectResult(cases[i], sources, rank, mine);
    }
  });
}

// Several under way at once, and devices that come and go at other times.
TEST(LocalCollective, ManyRoundsWithDelays) {
  constexpr int kDevices = 3;
  const std::vector<std::vector<int>> all = {{0, 1, 2}};
  std::vector<CollectiveCase> cases = {sumOf(3, all), sumOf(5000, all),
                                       sumOf(2, all)};
  cases[1].in_place = true;
  cases[2].info.kind = CollectiveKind::all_gather;
  for (bool spin : {true, false}) {
    LocalCommunicator comm({}, 4, 60, spin, infosOf(cases));
    onDevices(kDevices, [&](int device) {
      std::mt19937 random(static_cast<unsigned>(device));
      auto dawdle = [&] {
        if (random() % 16 == 0)
          std::this_thread::sleep_for(
              std::chrono::microseconds(random() % 300));
      };
      for (int round = 0; round < 200; ++round) {
        std::vector<std::vector<Bytes>> sources;
        std::vector<Buffers> mine;
        for (const CollectiveCase &of : cases) {
          sources.push_back(sourcesOf(of, 0, round));
          mine.emplace_back(of, sources.back(), device);
        }
        for (int i = 0; i < 3; ++i) {
          dawdle();
          ASSERT_TRUE(comm.start(i, device, round % 4, mine[i].source(),
                                 mine[i].target())
                          .ok());
        }
        for (int i = 0; i < 3; ++i) {
          dawdle();
          Status status = comm.finish(i, device, round % 4);
          ASSERT_TRUE(status.ok()) << status.message();
          expectResult(cases[i], sources[i], device, mine[i]);
        }
      }
    });
  }
}

TEST(LocalCollective, SaysWhoHasNotCome) {
  const CollectiveCase of = sumOf(3, {{0, 1, 2, 3}});
  LocalCommunicator comm({}, 1, 0.2, false, {of.info});
  std::string messages[2];
  const auto begin = std::chrono::steady_clock::now();
  onDevices(2, [&](int device) {
    Buffers mine(of, sourcesOf(of, 0, 0), 2 * device);
    ASSERT_TRUE(
        comm.start(0, 2 * device, 0, mine.source(), mine.target()).ok());
    messages[device] = comm.finish(0, 2 * device, 0).message();
  });
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  EXPECT_GE(passed.count(), 0.19);
  EXPECT_LT(passed.count(), 5);
  for (const std::string &message : messages)
    EXPECT_EQ(message, "waited 0.2 s for devices 1, 3");
}

TEST(LocalCollective, AbortWakesWhoWaits) {
  const CollectiveCase of = sumOf(5000, {{0, 1}});
  LocalCommunicator comm({}, 1, 60, false, {of.info});
  std::string message;
  std::thread waiting([&] {
    Buffers mine(of, sourcesOf(of, 0, 0), 0);
    EXPECT_TRUE(comm.start(0, 0, 0, mine.source(), mine.target()).ok());
    message = comm.finish(0, 0, 0).message();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  comm.abort();
  waiting.join();
  EXPECT_EQ(message, "stopped, because another device failed");
}

TEST(LocalCollective, RefusesWhatIsWrong) {
  CollectiveCase one = sumOf(3, {{0}, {2}});
  std::vector<CollectiveInfo> infos(4, one.info);
  infos[1].dtype = abi::DType::f8e5m2;
  infos[2].groups = {{0, 1}, {1}};
  infos[3].part = -1;
  LocalCommunicator comm({}, 1, 0.1, false, infos);
  Buffers mine(one, sourcesOf(one, 0, 0), 0);
  auto start = [&](int collective, int device) {
    return comm.start(collective, device, 0, mine.source(), mine.target())
        .message();
  };
  EXPECT_EQ(start(0, 1), "device 1 is in none of its groups");
  EXPECT_EQ(start(0, 7), "device 7 is in none of its groups");
  EXPECT_EQ(start(1, 0), "elements of its type cannot be combined so");
  EXPECT_EQ(start(2, 0), "a device is twice in its groups");
  EXPECT_EQ(start(3, 0), "it has no size that there is");
  EXPECT_EQ(start(4, 0), "there is no such collective");
  EXPECT_EQ(start(-1, 0), "there is no such collective");
  EXPECT_EQ(comm.finish(0, 0, 0).message(), "it was not started");
  EXPECT_EQ(start(0, 0), "");
  EXPECT_EQ(start(0, 0), "it was started again before it was finished");
  EXPECT_EQ(comm.finish(0, 0, 0).message(), "");
}

TEST(LocalCollective, SaysWhoIsElsewhere) {
  const CollectiveCase of = sumOf(3, {{0, 1}});
  LocalCommunicator comm({}, 2, 60, false, {of.info});
  onDevices(2, [&](int device) {
    Buffers mine(of, sourcesOf(of, 0, 0), device);
    EXPECT_TRUE(
        comm.start(0, device, device, mine.source(), mine.target()).ok());
    EXPECT_EQ(comm.finish(0, device, device).message(),
              device ? "device 0 is at micro-batch 0"
                     : "device 1 is at micro-batch 1");
  });
}

} // namespace
} // namespace partita::test

//===- MpiCollectiveTest.cpp - Collectives between processes --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run by mpirun, each process the device of its rank.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/mpi/Job.h"
#include "runtime/comm/mpi/MpiCommunicator.h"
#include "test/unit/comm/CollectiveCases.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <thread>

namespace partita::test {
namespace {

using namespace partita::runtime;

int device = 0, devices = 1;

std::shared_ptr<MpiCommunicator> make(const std::vector<CollectiveCase> &cases,
                                      std::vector<ChannelInfo> channels = {},
                                      double timeout_s = 60) {
  auto made = MpiCommunicator::create(MPI_COMM_WORLD, std::move(channels), 2,
                                      timeout_s, infosOf(cases));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : nullptr;
}

std::vector<int> allDevices() {
  std::vector<int> all(static_cast<size_t>(devices));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

CollectiveCase sumOf(int64_t part) {
  return {{CollectiveKind::all_reduce,
           Reduction::sum,
           abi::DType::f32,
           1,
           part,
           {allDevices()}},
          false};
}

void run(Communicator &comm, int collective, int device, Buffers &buffers) {
  Status status =
      comm.start(collective, device, 0, buffers.source(), buffers.target());
  ASSERT_TRUE(status.ok()) << status.message();
  status = comm.finish(collective, device, 0);
  ASSERT_TRUE(status.ok()) << status.message();
}

TEST(MpiCollective, GiveTheBitsOfThreads) {
  const std::vector<CollectiveCase> cases = allCases(devices);
  auto comm = make(cases);
  ASSERT_TRUE(comm);
  std::vector<std::vector<Bytes>> sources;
  std::vector<Buffers> here;
  for (size_t i = 0; i < cases.size(); ++i) {
    sources.push_back(sourcesOf(cases[i], 0, 0));
    here.emplace_back(cases[i], sources[i], device);
    run(*comm, int(i), device, here.back());
    EXPECT_TRUE(here.back().sourceIsUnchanged());
    EXPECT_TRUE(agree(cases[i].info.dtype,
                      expectedOf(cases[i], sources[i], device),
                      here.back().results()))
        << nameOf(cases[i]) << ", device " << device;
  }
  LocalCommunicator local({}, 1, 60, false, infosOf(cases));
  std::vector<std::thread> threads;
  for (int d = 0; d < devices; ++d)
    threads.emplace_back([&, d] {
      for (size_t i = 0; i < cases.size(); ++i) {
        Buffers mine(cases[i], sources[i], d);
        run(local, int(i), d, mine);
        if (d == device)
          EXPECT_EQ(mine.results(), here[i].results()) << nameOf(cases[i]);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(MpiCollective, GroupsAreApartAndInTheirOrder) {
  if (devices < 4)
    GTEST_SKIP() << "for four processes and more";
  std::vector<CollectiveCase> cases;
  for (CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather,
        CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
        CollectiveKind::broadcast})
    for (int64_t part : {7, 50000})
      cases.push_back(
          {{kind, Reduction::sum, abi::DType::f32, 2, part, {{3, 1}, {0, 2}}},
           false});
  auto comm = make(cases);
  ASSERT_TRUE(comm);
  for (size_t i = 0; i < cases.size(); ++i) {
    const int group = device % 2 == 0, rank = device == 1 || device == 2;
    const std::vector<Bytes> sources = sourcesOf(cases[i], group, 0);
    Buffers mine(cases[i], sources, rank);
    if (device > 3) {
      EXPECT_FALSE(
          comm->start(int(i), device, 0, mine.source(), mine.target()).ok());
      continue;
    }
    run(*comm, int(i), device, mine);
    EXPECT_TRUE(agree(cases[i].info.dtype, expectedOf(cases[i], sources, rank),
                      mine.results()))
        << nameOf(cases[i]);
  }
}

// Several under way at once, with messages of a channel between them.
TEST(MpiCollective, ManyRoundsWithDelays) {
  std::vector<CollectiveCase> cases = {sumOf(3), sumOf(40000), sumOf(2)};
  cases[1].in_place = true;
  cases[2].info.kind = CollectiveKind::all_gather;
  std::vector<ChannelInfo> channels;
  for (int from = 0; from < devices; ++from)
    channels.push_back({from, (from + 1) % devices, 8});
  auto comm = make(cases, channels);
  ASSERT_TRUE(comm);
  std::mt19937 random(static_cast<unsigned>(device));
  auto dawdle = [&] {
    if (random() % 16 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<Bytes>> sources;
    std::vector<Buffers> mine;
    for (const CollectiveCase &of : cases) {
      sources.push_back(sourcesOf(of, 0, round));
      mine.emplace_back(of, sources.back(), device);
    }
    const int64_t sent = 1000 * round + device;
    int64_t received = -1;
    for (int i = 0; i < 3; ++i) {
      dawdle();
      ASSERT_TRUE(
          comm->start(i, device, round % 2, mine[i].source(), mine[i].target())
              .ok());
      if (i == 1 && devices > 1)
        ASSERT_TRUE(comm->send(device, round % 2, &sent, 8).ok());
    }
    const int before = (device + devices - 1) % devices;
    for (int i = 0; i < 3; ++i) {
      dawdle();
      Status status = comm->finish(i, device, round % 2);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(agree(cases[i].info.dtype,
                        expectedOf(cases[i], sources[i], device),
                        mine[i].results()))
          << nameOf(cases[i]) << ", round " << round;
      if (i == 1 && devices > 1) {
        ASSERT_TRUE(comm->recv(before, round % 2, &received, 8).ok());
        ASSERT_TRUE(comm->waitSent(device, round % 2).ok());
        EXPECT_EQ(received, 1000 * round + before);
      }
    }
  }
}

TEST(MpiCollective, SendsNoMoreThanItMust) {
  // Lines of 16 elements, as many for each device.
  const int64_t lines = 20, part = 16 * lines * devices, bytes = 4 * part;
  const int64_t others = devices - 1;
  for (auto [kind, most] :
       {std::pair(CollectiveKind::all_reduce, 2 * others * bytes / devices),
        std::pair(CollectiveKind::reduce_scatter, others * bytes),
        std::pair(CollectiveKind::all_gather, others * bytes),
        std::pair(CollectiveKind::all_to_all, others * bytes),
        std::pair(CollectiveKind::broadcast, device ? 0 : others * bytes)})
    for (bool in_place : {false, true}) {
      CollectiveCase of = sumOf(part);
      of.info.kind = kind;
      of.in_place = in_place && kind == CollectiveKind::all_reduce;
      auto comm = make({of});
      ASSERT_TRUE(comm);
      Buffers mine(of, sourcesOf(of, 0, 0), device);
      run(*comm, 0, device, mine);
      EXPECT_EQ(comm->sentBytes(), most) << nameOf(of);
      run(*comm, 0, device, mine);
      EXPECT_EQ(comm->sentBytes(), 2 * most) << nameOf(of);
    }
}

TEST(MpiCollective, RefusesWhatIsWrong) {
  auto message = [&](const CollectiveInfo &info) {
    return MpiCommunicator::create(MPI_COMM_WORLD, {}, 1, 1, {info})
        .status()
        .message();
  };
  CollectiveInfo info = sumOf(3).info;
  info.groups = {{0, devices}};
  EXPECT_EQ(message(info), "collective 0 of the plan: there is no device " +
                               std::to_string(devices) + " among " +
                               std::to_string(devices) + " processes");
  info.groups = {{0, 0}};
  EXPECT_EQ(message(info),
            "collective 0 of the plan: a device is twice in its groups");
  info = sumOf(3).info;
  info.dtype = abi::DType::f8e5m2;
  EXPECT_EQ(message(info), "collective 0 of the plan: elements of its type "
                           "cannot be combined so");
  auto comm = make({sumOf(3)});
  ASSERT_TRUE(comm);
  EXPECT_EQ(comm->finish(0, device, 0).message(), "it was not started");
  EXPECT_EQ(comm->finish(1, device, 0).message(),
            "there is no such collective");
  comm->abort();
  EXPECT_EQ(comm->start(0, device, 0, nullptr, nullptr).message(),
            "this process has failed before");
}

// The last device comes when the others have given up. Few bytes, which MPI
// carries without the receiver, so that nothing stays under way.
TEST(MpiCollective, SaysWhoHasNotCome) {
  if (devices < 2)
    GTEST_SKIP() << "for two processes and more";
  const CollectiveCase of = sumOf(16 * devices);
  auto comm = make({of}, {}, 0.3);
  ASSERT_TRUE(comm);
  Buffers mine(of, sourcesOf(of, 0, 0), device);
  const bool late = device == devices - 1;
  if (late)
    std::this_thread::sleep_for(std::chrono::seconds(2));
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(comm->start(0, device, 0, mine.source(), mine.target()).ok());
  const std::string message = comm->finish(0, device, 0).message();
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  EXPECT_LT(passed.count(), 1.5);
  if (!late)
    EXPECT_EQ(message, "nothing happened within 0.3 s, waiting for device " +
                           std::to_string(devices - 1));
  else
    EXPECT_NE(message.find("waiting for device"), std::string::npos) << message;
  MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace
} // namespace partita::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  auto job = partita::runtime::mpi::Job::start();
  if (!job)
    return 1;
  partita::test::device = (*job)->rank();
  partita::test::devices = (*job)->size();
  const int failed = RUN_ALL_TESTS();
  if (failed)
    (*job)->abort();
  return 0;
}

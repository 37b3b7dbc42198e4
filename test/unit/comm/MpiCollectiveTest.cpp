//===- MpiCollectiveTest.cpp - Collectives between processes --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mpirun -n PROCESSES partita_mpi_collective_tests [DEVICES [MAP]]
//
// As many devices as processes, if the command line says no more; MAP as
// Placement::parse reads it. A process has a thread for each of its devices.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/mpi/Job.h"
#include "runtime/comm/mpi/MixedCommunicator.h"
#include "test/unit/comm/CollectiveCases.h"
#include "test/unit/comm/Ends.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <unistd.h>

namespace partita::test {
namespace {

using namespace partita::runtime;

int process = 0, devices = 1;
std::optional<mpi::Placement> placement;

std::shared_ptr<MixedCommunicator>
make(const std::vector<CollectiveCase> &cases,
     std::vector<ChannelInfo> channels = {}, double timeout_s = 60) {
  // What a test that fails on purpose leaves under way meets no other test.
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  auto made = MixedCommunicator::create(
      comm, *placement, channels, 2, timeout_s, /*spin=*/false, infosOf(cases));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : nullptr;
}

const std::vector<int> &devicesHere() { return placement->devicesOf(process); }

/// In a thread for each device of this process.
void onEachDevice(const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int device : devicesHere())
    threads.emplace_back(body, device);
  for (std::thread &thread : threads)
    thread.join();
}

/// As MPI_Barrier, which would take all time of a processor meanwhile.
void awaitProcesses() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
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

void run(Ends &ends, int collective, int device, Buffers &buffers) {
  Status status =
      ends.start(collective, device, 0, buffers.source(), buffers.target());
  ASSERT_TRUE(status.ok()) << status.message();
  status = ends.finish(collective, device, 0);
  ASSERT_TRUE(status.ok()) << status.message();
}

TEST(MpiCollective, GiveTheBitsOfThreads) {
  const std::vector<CollectiveCase> cases = allCases(devices);
  auto comm = make(cases);
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  std::vector<std::vector<Bytes>> sources;
  for (const CollectiveCase &of : cases)
    sources.push_back(sourcesOf(of, 0, 0));
  std::vector<std::vector<Bytes>> here(static_cast<size_t>(devices));
  onEachDevice([&](int device) {
    for (size_t i = 0; i < cases.size(); ++i) {
      Buffers mine(cases[i], sources[i], device);
      run(ends, int(i), device, mine);
      EXPECT_TRUE(mine.sourceIsUnchanged());
      EXPECT_TRUE(agree(cases[i].info.dtype,
                        expectedOf(cases[i], sources[i], device),
                        mine.results()))
          << nameOf(cases[i]) << ", device " << device;
      here[size_t(device)].push_back(mine.results());
    }
  });
  // Each case is for one of the processes, drawn alike in all of them.
  std::vector<size_t> mine;
  std::mt19937 random;
  for (size_t i = 0; i < cases.size(); ++i)
    if (int(random() % unsigned(placement->processes())) == process)
      mine.push_back(i);
  LocalCommunicator local({}, 1, 60, false, infosOf(cases));
  Ends locals(local);
  std::vector<std::thread> threads;
  for (int d = 0; d < devices; ++d)
    threads.emplace_back([&, d] {
      for (size_t i : mine) {
        Buffers buffers(cases[i], sources[i], d);
        run(locals, int(i), d, buffers);
        if (placement->processOf(d) == process)
          EXPECT_EQ(buffers.results(), here[size_t(d)][i]) << nameOf(cases[i]);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(MpiCollective, GroupsAreApartAndInTheirOrder) {
  if (devices < 4)
    GTEST_SKIP() << "for four devices and more";
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
  Ends ends(*comm);
  onEachDevice([&](int device) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const int group = device % 2 == 0, rank = device == 1 || device == 2;
      const std::vector<Bytes> sources = sourcesOf(cases[i], group, 0);
      Buffers mine(cases[i], sources, rank);
      if (device > 3) {
        EXPECT_FALSE(
            ends.start(int(i), device, 0, mine.source(), mine.target()).ok());
        continue;
      }
      run(ends, int(i), device, mine);
      EXPECT_TRUE(agree(cases[i].info.dtype,
                        expectedOf(cases[i], sources, rank), mine.results()))
          << nameOf(cases[i]);
    }
  });
}

// Several under way at once, with messages of a channel between them. They are
// finished in another order than they were started in.
TEST(MpiCollective, ManyRoundsWithDelays) {
  std::vector<CollectiveCase> cases = {sumOf(3), sumOf(40000), sumOf(2),
                                       sumOf(50000)};
  cases[1].in_place = true;
  cases[2].info.kind = CollectiveKind::all_gather;
  std::vector<ChannelInfo> channels;
  for (int from = 0; from < devices; ++from)
    channels.push_back({from, (from + 1) % devices, 8});
  auto comm = make(cases, channels);
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  // Numbers of three kinds, in turns: a round meets neither those of the round
  // before nor those that the slot had before.
  struct Numbers {
    std::vector<std::vector<Bytes>> sources;  ///< of a case and a device
    std::vector<std::vector<Bytes>> expected; ///< likewise
  };
  std::array<Numbers, 3> numbers;
  for (size_t kind = 0; kind < numbers.size(); ++kind)
    for (const CollectiveCase &of : cases) {
      Numbers &all = numbers[kind];
      all.sources.push_back(sourcesOf(of, 0, int(kind)));
      all.expected.emplace_back(size_t(devices));
      for (int device : devicesHere())
        all.expected.back()[size_t(device)] =
            expectedOf(of, all.sources.back(), device);
    }
  onEachDevice([&](int device) {
    std::mt19937 random(static_cast<unsigned>(device));
    auto dawdle = [&] {
      if (random() % 16 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    };
    for (int round = 0; round < 100; ++round) {
      const Numbers &all = numbers[size_t(round) % numbers.size()];
      std::vector<Buffers> mine;
      for (size_t i = 0; i < cases.size(); ++i)
        mine.emplace_back(cases[i], all.sources[i], device);
      const int64_t sent = 1000 * round + device;
      int64_t received = -1;
      for (int i = 0; i < 4; ++i) {
        dawdle();
        ASSERT_TRUE(
            ends.start(i, device, round % 2, mine[i].source(), mine[i].target())
                .ok());
        if (i == 1 && devices > 1)
          ASSERT_TRUE(ends.send(device, round % 2, &sent, 8).ok());
      }
      const int before = (device + devices - 1) % devices;
      for (int i : {0, 3, 1, 2}) {
        dawdle();
        Status status = ends.finish(i, device, round % 2);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_TRUE(agree(cases[i].info.dtype,
                          all.expected[size_t(i)][size_t(device)],
                          mine[i].results()))
            << nameOf(cases[i]) << ", round " << round;
        if (i == 1 && devices > 1) {
          ASSERT_TRUE(ends.recv(before, round % 2, &received, 8).ok());
          ASSERT_TRUE(ends.waitSent(device, round % 2).ok());
          EXPECT_EQ(received, 1000 * round + before);
        }
      }
    }
  });
}

// A receiver of the same process reads the sender's bytes where they are.
TEST(MpiCollective, CopiesOnlyBetweenProcesses) {
  if (devices < 2)
    GTEST_SKIP() << "for two devices and more";
  std::vector<ChannelInfo> channels;
  for (int from = 0; from < devices; ++from)
    channels.push_back({from, (from + 1) % devices, 4096});
  auto comm = make({}, channels);
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  std::vector<Bytes> sent(static_cast<size_t>(devices), Bytes(4096));
  onEachDevice([&](int device) {
    std::fill(sent[size_t(device)].begin(), sent[size_t(device)].end(),
              uint8_t(device + 1));
    ASSERT_TRUE(ends.send(device, 0, sent[size_t(device)].data(), 4096).ok());
    const int before = (device + devices - 1) % devices;
    const bool local = placement->processOf(before) == process;
    Bytes room(4096);
    auto at = ends.receiver(before).borrow(0, room.data(), 4096);
    ASSERT_TRUE(at.ok()) << at.status().message();
    EXPECT_EQ(*at, local ? sent[size_t(before)].data() : room.data());
    EXPECT_EQ((*at)[4095], before + 1);
    ends.receiver(before).release(0);
    ASSERT_TRUE(ends.waitSent(device, 0).ok());
  });
}

/// Computes, without a call of MPI, until `done` or for ten seconds.
bool computeUntil(const std::function<bool()> &done) {
  const auto begin = std::chrono::steady_clock::now();
  while (!done())
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(10))
      return false;
  return true;
}

// The bytes of others arrive while all devices compute.
TEST(MpiCollective, AdvanceWhileDevicesCompute) {
  if (placement->processes() < 2 || devices > 6)
    GTEST_SKIP() << "for two processes and more; threads that compute take a "
                    "core each";
  CollectiveCase of = sumOf(int64_t(1) << 20);
  of.info.kind = CollectiveKind::all_gather;
  auto comm = make({of});
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  const std::vector<Bytes> sources = sourcesOf(of, 0, 0);
  const Bytes expected = expectedOf(of, sources, 0);
  std::vector<Buffers> buffers;
  for (int device : devicesHere())
    buffers.emplace_back(of, sources, device);
  onEachDevice([&](int device) {
    Buffers &mine = buffers[size_t(placement->placeOf(device))];
    ASSERT_TRUE(ends.start(0, device, 0, mine.source(), mine.target()).ok());
    const auto *target = static_cast<volatile uint8_t *>(mine.target());
    const size_t part = expected.size() / size_t(devices);
    EXPECT_TRUE(computeUntil([&] {
      for (int other = 0; other < devices; ++other)
        if (placement->processOf(other) != process)
          for (size_t i = 0; i < part; i += part / 1024)
            if (target[size_t(other) * part + i] !=
                expected[size_t(other) * part + i])
              return false;
      return true;
    })) << "device "
        << device;
    ASSERT_TRUE(ends.finish(0, device, 0).ok());
    EXPECT_EQ(mine.results(), expected);
  });
}

// A large message is there before the unit of its sender ends.
TEST(MpiCollective, SendsAdvanceWhileTheSenderComputes) {
  const int last = devices - 1;
  if (placement->processOf(last) == placement->processOf(0))
    GTEST_SKIP() << "for two processes and more";
  constexpr int64_t kBytes = 32 << 20;
  auto comm = make({}, {{0, last, kBytes}});
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  // The processes have the same parent, and tell each other without MPI.
  const std::string said =
      testing::TempDir() + "/partita-received-" + std::to_string(getppid());
  Bytes bytes(kBytes, 1);
  if (placement->processOf(0) == process) {
    ASSERT_TRUE(ends.send(0, 0, bytes.data(), kBytes).ok());
    EXPECT_TRUE(computeUntil([&] { return access(said.c_str(), F_OK) == 0; }));
    ASSERT_TRUE(ends.waitSent(0, 0).ok());
    unlink(said.c_str());
  } else if (placement->processOf(last) == process) {
    Bytes received(kBytes);
    ASSERT_TRUE(ends.recv(0, 0, received.data(), kBytes).ok());
    std::fclose(std::fopen(said.c_str(), "w"));
    EXPECT_EQ(received, bytes);
  }
}

// Devices of one process send each other nothing.
TEST(MpiCollective, SendsNoMoreThanItMust) {
  // Lines of 16 elements, as many for each device.
  const int64_t lines = 20, part = 16 * lines * devices, bytes = 4 * part;
  const auto here = int64_t(devicesHere().size()), others = devices - here;
  const bool first = devicesHere().front() == 0;
  for (auto [kind, most] :
       {std::pair(CollectiveKind::all_reduce,
                  here * 2 * others * bytes / devices),
        std::pair(CollectiveKind::reduce_scatter, here * others * bytes),
        std::pair(CollectiveKind::all_gather, here * others * bytes),
        std::pair(CollectiveKind::all_to_all, here * others * bytes),
        std::pair(CollectiveKind::broadcast, first ? others * bytes : 0)})
    for (bool in_place : {false, true}) {
      CollectiveCase of = sumOf(part);
      of.info.kind = kind;
      of.in_place = in_place && kind == CollectiveKind::all_reduce;
      auto comm = make({of});
      ASSERT_TRUE(comm);
      Ends ends(*comm);
      for (int round = 1; round <= 2; ++round) {
        onEachDevice([&](int device) {
          Buffers mine(of, sourcesOf(of, 0, 0), device);
          run(ends, 0, device, mine);
        });
        EXPECT_EQ(comm->sentBytes(), round * most) << nameOf(of);
      }
    }
}

TEST(MpiCollective, RefusesWhatIsWrong) {
  auto message = [&](const CollectiveInfo &info) {
    return MixedCommunicator::create(MPI_COMM_WORLD, *placement, {}, 1, 1,
                                     false, {info})
        .status()
        .message();
  };
  CollectiveInfo info = sumOf(3).info;
  info.groups = {{0, devices}};
  EXPECT_EQ(message(info), "collective 0 of the plan: there is no device " +
                               std::to_string(devices) + " among " +
                               std::to_string(devices));
  info.groups = {{0, 0}};
  EXPECT_EQ(message(info),
            "collective 0 of the plan: a device is twice in its groups");
  info = sumOf(3).info;
  info.dtype = abi::DType::f8e5m2;
  EXPECT_EQ(message(info), "collective 0 of the plan: elements of its type "
                           "cannot be combined so");
  auto comm = make({sumOf(3)});
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  const int device = devicesHere().front();
  EXPECT_EQ(ends.finish(0, device, 0).message(), "it was not started");
  EXPECT_EQ(ends.finish(1, device, 0).message(), "there is no such collective");
}

// The last device comes when the others have given up. Few bytes, which MPI
// carries without the receiver, so that nothing stays under way.
TEST(MpiCollective, SaysWhoHasNotCome) {
  if (devices < 2)
    GTEST_SKIP() << "for two devices and more";
  const CollectiveCase of = sumOf(16 * devices);
  // On a busy machine the others come late, too.
  auto comm = make({of}, {}, 1.5);
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  const int last = devices - 1;
  std::vector<Buffers> buffers;
  for (int device = 0; device < devices; ++device)
    buffers.emplace_back(of, sourcesOf(of, 0, 0), device);
  const bool local = placement->processOf(last) == process;
  auto messageOf = [&](int device) -> std::string {
    Buffers &mine = buffers[size_t(device)];
    const auto begin = std::chrono::steady_clock::now();
    Status started = ends.start(0, device, 0, mine.source(), mine.target());
    EXPECT_TRUE(started.ok()) << started.message();
    std::string message = ends.finish(0, device, 0).message();
    const std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - begin;
    EXPECT_LT(passed.count(), 8);
    return message;
  };
  onEachDevice([&](int device) {
    if (device == last)
      return;
    const std::string message = messageOf(device);
    if (local)
      EXPECT_EQ(message, "waited 2.5 s for device " + std::to_string(last));
    else
      EXPECT_EQ(message, "nothing happened within 1.5 s, waiting for " +
                             placement->text({last}));
  });
  awaitProcesses();
  if (local) {
    const std::string message = messageOf(last);
    if (placement->processes() == 1)
      EXPECT_EQ(message, ""); // the others have left their parts
    else
      EXPECT_NE(message.find(" for device"), std::string::npos) << message;
  }
  awaitProcesses();
}

// Whatever a device waits for, the failure of another one ends it.
TEST(MpiCollective, AbortWakesThoseWhoWait) {
  if (devices < 2)
    GTEST_SKIP() << "for two devices and more";
  // Nobody sends; the last device does not come.
  std::vector<ChannelInfo> channels;
  for (int from = 0; from < devices; ++from)
    channels.push_back({from, (from + 1) % devices, 8});
  const CollectiveCase of = sumOf(16 * devices);
  auto comm = make({of}, channels);
  ASSERT_TRUE(comm);
  Ends ends(*comm);
  std::vector<Buffers> buffers;
  for (int device = 0; device < devices; ++device)
    buffers.emplace_back(of, sourcesOf(of, 0, 0), device);
  std::thread aborting([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    comm->abort();
  });
  const std::string expected = "stopped, because another device failed";
  onEachDevice([&](int device) {
    Buffers &mine = buffers[size_t(device)];
    if (device % 2 && device != devices - 1) {
      ASSERT_TRUE(ends.start(0, device, 0, mine.source(), mine.target()).ok());
      EXPECT_EQ(ends.finish(0, device, 0).message(), expected);
    } else {
      int64_t bytes = 0;
      EXPECT_EQ(
          ends.recv((device + devices - 1) % devices, 0, &bytes, 8).message(),
          expected);
    }
  });
  aborting.join();
  awaitProcesses();
}

} // namespace
} // namespace partita::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  auto job = partita::runtime::mpi::Job::start();
  if (!job)
    return 1;
  using partita::runtime::mpi::Placement;
  partita::test::process = (*job)->rank();
  const int processes = (*job)->size();
  partita::test::devices = argc > 1 ? std::atoi(argv[1]) : processes;
  auto placement =
      argc > 2 ? Placement::parse(argv[2], partita::test::devices, processes)
               : Placement::even(partita::test::devices, processes);
  if (!placement.ok()) {
    std::fprintf(stderr, "%s\n", placement.status().message().c_str());
    (*job)->abort();
  }
  partita::test::placement = *placement;
  const int failed = RUN_ALL_TESTS();
  if (failed)
    (*job)->abort();
  return 0;
}

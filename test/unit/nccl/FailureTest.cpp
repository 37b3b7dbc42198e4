//===- FailureTest.cpp - What NCCL lacks, and what fails in it ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"
#include "test/unit/cuda/WrappedApi.h"
#include "test/unit/nccl/Fleet.h"
#include "test/unit/nccl/WrappedNccl.h"

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <numeric>
#include <span>
#include <thread>
#include <unistd.h>

namespace partita::test {
namespace {

using namespace runtime;
using nccl::Traffic;

/// For tests in which one process has all devices.
#define SKIP_UNLESS_ALONE()                                                    \
  SKIP_WITHOUT_GPU();                                                          \
  if (world().processes.gather_all)                                            \
  GTEST_SKIP() << "for one process"

void expectSays(const std::string &message,
                const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos)
        << "got: " << message << "\nwithout: " << part;
}

Traffic oneOfEachKind() {
  Traffic traffic;
  traffic.messages.resize(kDevices);
  for (CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather,
        CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
        CollectiveKind::broadcast})
    traffic.collectives.push_back(
        {kind, Reduction::sum, abi::DType::f32, 2, 3, {{0, 1, 2, 3}}});
  return traffic;
}

/// Of the emulator; 0 without it.
uint64_t counted(const char *name) {
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  auto *count = reinterpret_cast<uint64_t (*)(const char *)>(
      ::dlsym(driver, "cuEmuCount"));
  return count ? count(name) : 0;
}
/// Ranks of the stand-in that have joined a communicator, and not left it: both
/// are files in its folder.
uint64_t ranks() {
  const std::string prefix = "gpuemu-nccl-" + std::to_string(getpid()) + "-";
  uint64_t count = 0;
  for (const auto &folder : std::filesystem::directory_iterator("/dev/shm"))
    if (folder.path().filename().string().starts_with(prefix))
      for (const auto &file : std::filesystem::directory_iterator(folder)) {
        const std::string name = file.path().filename();
        count += name.starts_with("rank-");
        count -= name.starts_with("left-");
      }
  return count;
}
std::vector<uint64_t> live() {
  return {counted("live-allocations"), counted("live-streams"),
          counted("live-events"), ranks()};
}

/// Connects all devices, and does each collective once, with a thread for each
/// device, as a session does.
Status useAll(const nccl::Library &library, double timeout_s) {
  Fleet fleet(oneOfEachKind(), timeout_s, library);
  if (!fleet.status.ok())
    return fleet.status;
  if (Status status = fleet.comm->connect(); !status.ok())
    return status;
  std::vector<Status> statuses(kDevices);
  std::vector<std::thread> threads;
  for (int device = 0; device < kDevices; ++device)
    threads.emplace_back([&, device] {
      auto work = [&]() -> Status {
        const std::vector<float> ones(64, 1);
        std::vector<uint8_t *> memory;
        for (int i = 0; i < 2; ++i) {
          auto made = fleet.device(device).allocate(256, "a test");
          if (!made)
            return made.status();
          memory.push_back(*made);
        }
        if (Status status =
                fleet.queue(device).copyIn(memory[0], ones.data(), 256);
            !status.ok())
          return status;
        for (int i = 0; i < 5; ++i) {
          if (Status status =
                  fleet.ends->start(i, device, 0, memory[0], memory[1]);
              !status.ok())
            return status;
          if (Status status = fleet.ends->finish(i, device, 0); !status.ok())
            return status;
        }
        return fleet.await(device);
      };
      statuses[size_t(device)] = work();
      if (!statuses[size_t(device)].ok())
        fleet.comm->abort(); // as a session does
    });
  for (std::thread &thread : threads)
    thread.join();
  // That of the device that failed first.
  for (const Status &status : statuses)
    if (!status.ok() &&
        status.message().find("another device") == std::string::npos)
      return status;
  for (const Status &status : statuses)
    if (!status.ok())
      return status;
  return Status();
}

TEST(NcclFailure, EachCallThatFailsIsToldAndNothingLeaks) {
  SKIP_UNLESS_ALONE();
  const nccl::Library &real = nccl::loadLibrary();
  ASSERT_TRUE(real.api) << real.status.message();
  (void)useAll(real, 20); // what is made once
  const std::vector<uint64_t> before = live();
  std::map<std::string, int> calls;
  {
    WrappedNccl wrapped(*real.api);
    const Status status = useAll(wrapped.library(), 20);
    ASSERT_TRUE(status.ok()) << status.message();
    calls = wrapped.allCalls();
  }
  EXPECT_EQ(live(), before);
  // All but: the version is asked for when NCCL is loaded, nothing is aborted.
  EXPECT_EQ(calls.size(), 14u);
  for (const auto &[name, count] : calls)
    for (int at : {1, 2, count / 2, count}) {
      SCOPED_TRACE(name + ", call " + std::to_string(at));
      const auto begin = std::chrono::steady_clock::now();
      {
        WrappedNccl wrapped(*real.api);
        // How often the state is asked for depends on when it is ready: the
        // call may come in the end of the run, which has no error, or not at
        // all.
        std::atomic<bool> ending = false, failed = false;
        wrapped.answer = [&](const std::string &called,
                             int number) -> std::optional<nccl::Result> {
          if (called == "commFinalize" || called == "commDestroy")
            ending = true;
          if (called != name || number != at)
            return std::nullopt;
          failed = !ending;
          return nccl::Result::system_error;
        };
        const Status status = useAll(wrapped.library(), 20);
        EXPECT_EQ(status.ok(), !failed) << status.message();
        if (!status.ok())
          expectSays(status.message(),
                     {"NCCL says 'unhandled system error' (2)"});
      }
      EXPECT_EQ(live(), before);
      EXPECT_LT(std::chrono::steady_clock::now() - begin,
                std::chrono::seconds(15));
    }
}

TEST(NcclFailure, SaysWhoHasNotComeAndWhatCameBefore) {
  SKIP_UNLESS_ALONE();
  Fleet fleet(oneOfEachKind(), 0.5);
  ASSERT_TRUE(fleet.status.ok()) << fleet.status.message();
  Status status = fleet.comm->connect();
  ASSERT_TRUE(status.ok()) << status.message();
  for (int device = 0; device < kDevices; ++device) {
    uint8_t *memory = fleet.allocate(device, 256);
    ASSERT_TRUE(fleet.ends->start(0, device, 0, memory, memory + 128).ok());
    ASSERT_TRUE(fleet.ends->finish(0, device, 0).ok());
    if (device == 3)
      continue; // does not come again
    ASSERT_TRUE(fleet.ends->start(1, device, 7, memory, memory + 128).ok());
    ASSERT_TRUE(fleet.ends->finish(1, device, 7).ok());
  }
  ASSERT_TRUE(fleet.await(3).ok());
  const std::string message = fleet.await(0).message();
  expectSays(
      message,
      {"waited 0.5 s for all_gather (collective 1), micro-batch 7, waiting for "
       "devices 1, 2, 3",
       "the last operations of device 0: ",
       "all_reduce (collective 0), micro-batch 0 (done); all_gather "
       "(collective "
       "1), micro-batch 7 (not done)"});
  // Its communicators are gone, and the others learn of it.
  EXPECT_FALSE(fleet.await(1).ok());
  fleet.comm->abort();
  EXPECT_FALSE(fleet.await(2).ok());
}

/// Two sums on four devices, of which device 0 leaves out a wait of a stream
/// (-1: none). Returns whether all is right, and counts its waits.
bool isRightWithout(int left_out, int &waits) {
  WrappedApi wrapped(**cuda::loadApi());
  bool is_watched = false;
  waits = 0;
  wrapped.answer = [&](const std::string &name, int) {
    return is_watched && name == "streamWaitEvent" && waits++ == left_out
               ? std::optional(cuda::Result::success)
               : std::nullopt;
  };
  Traffic traffic = oneOfEachKind();
  traffic.collectives.resize(1);
  traffic.collectives[0].rows = 16;
  Fleet fleet(traffic, 20, nccl::loadLibrary(), wrapped.api);
  if (!fleet.comm->connect().ok())
    return false;
  std::vector<uint8_t *> from, to;
  std::vector<std::vector<float>> sources, targets;
  for (int device = 0; device < kDevices; ++device) {
    from.push_back(fleet.allocate(device, 192));
    to.push_back(fleet.allocate(device, 192));
    for (int round = 0; round < 2; ++round) {
      sources.emplace_back(48, float((device + 1) * (round + 1)));
      targets.emplace_back(48);
    }
  }
  for (int round = 0; round < 2; ++round)
    for (int device = 0; device < kDevices; ++device) {
      const auto d = size_t(device), key = d * 2 + size_t(round);
      Queue &queue = fleet.queue(device);
      if (!queue.copyIn(from[d], sources[key].data(), 192).ok())
        return false;
      is_watched = device == 0;
      const bool works = fleet.ends->start(0, device, 0, from[d], to[d]).ok() &&
                         fleet.ends->finish(0, device, 0).ok();
      is_watched = false;
      if (!works || !queue.copyOut(targets[key].data(), to[d], 192).ok())
        return false;
    }
  bool is_right = true;
  for (int device = 0; device < kDevices; ++device)
    is_right &= fleet.await(device).ok();
  for (size_t i = 0; i < targets.size(); ++i)
    is_right &= targets[i] == std::vector<float>(48, i % 2 ? 20 : 10);
  return is_right;
}

// Of each collective: what it reads is there, and what it writes is awaited.
TEST(NcclFailure, AWaitThatIsLeftOutGoesWrong) {
  SKIP_UNLESS_ALONE();
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  auto *seed =
      reinterpret_cast<void (*)(uint64_t)>(::dlsym(driver, "cuEmuSeed"));
  if (!seed)
    GTEST_SKIP() << "needs the emulator";
  int waits = 0;
  for (uint64_t each = 1; each <= 4; ++each) {
    seed(each);
    ASSERT_TRUE(isRightWithout(-1, waits));
  }
  EXPECT_EQ(waits, 4);
  for (int left_out = 0; left_out < 4; ++left_out) {
    bool is_wrong = false;
    for (uint64_t each = 1; each <= 30 && !is_wrong; ++each) {
      seed(each);
      is_wrong = !isRightWithout(left_out, waits);
    }
    EXPECT_TRUE(is_wrong) << "wait " << left_out;
  }
}

TEST(NcclFailure, AbortWakesThoseWhoWait) {
  SKIP_UNLESS_ALONE();
  Fleet fleet(oneOfEachKind());
  ASSERT_TRUE(fleet.comm->connect().ok());
  uint8_t *memory = fleet.allocate(0, 256);
  ASSERT_TRUE(fleet.ends->start(0, 0, 0, memory, memory + 128).ok());
  ASSERT_TRUE(fleet.ends->finish(0, 0, 0).ok());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fleet.comm->abort();
  });
  const auto begin = std::chrono::steady_clock::now();
  const Status status = fleet.await(0);
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  // The stream came to its end, or its error was seen first.
  if (!status.ok())
    EXPECT_EQ(status.message(), "stopped, because another device failed");
  EXPECT_FALSE(fleet.ends->start(0, 0, 0, memory, memory + 128).ok());
}

// Device 0 sends to one device that does not come, and receives from another
// one. No communicator of it may wait for the kernel of the other one before
// that is aborted, too.
TEST(NcclFailure, CommunicatorsOfADeviceAreAbortedTogether) {
  SKIP_WITHOUT_GPU();
  if (!world().processes.gather_all)
    GTEST_SKIP() << "for several processes";
  Traffic traffic;
  traffic.channels = {{0, 1, 64}, {2, 0, 64}};
  traffic.messages = {{{0, 0, true, 0}, {1, 0, false, 1}},
                      {{0, 0, false, 0}},
                      {{1, 0, true, 0}},
                      {}};
  Fleet fleet(traffic, 2);
  ASSERT_TRUE(fleet.status.ok()) << fleet.status.message();
  const Status status = fleet.comm->connect();
  ASSERT_TRUE(status.ok()) << status.message();
  if (world().rank == 0) {
    uint8_t *memory = fleet.allocate(0, 128);
    const std::vector<uint8_t> sent(64, 1);
    EXPECT_TRUE(fleet.device(0).upload(memory, sent.data(), 64).ok());
    EXPECT_TRUE(fleet.ends->send(0, 0, memory, 64).ok());
    EXPECT_TRUE(fleet.ends->recv(1, 0, memory + 64, 64).ok());
    const auto begin = std::chrono::steady_clock::now();
    expectSays(fleet.await(0).message(),
               {"send (channel 0), micro-batch 0, waiting for device 1",
                "receive (channel 1), micro-batch 0, waiting for device 2"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(5));
  }
  world().barrier();
  fleet.comm->abort();
}

TEST(NcclFailure, AnAbortHasADeadline) {
  SKIP_UNLESS_ALONE();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto hang = [] {
    WrappedNccl wrapped(*nccl::loadLibrary().api);
    Traffic traffic = oneOfEachKind();
    Fleet fleet(traffic, 0.5, wrapped.library());
    if (!fleet.comm->connect().ok())
      std::_Exit(2);
    uint8_t *memory = fleet.allocate(0, 256);
    (void)fleet.ends->start(1, 0, 3, memory, memory + 128);
    (void)fleet.ends->finish(1, 0, 3);
    wrapped.answer = [](const std::string &name,
                        int) -> std::optional<nccl::Result> {
      if (name == "commAbort")
        std::this_thread::sleep_for(std::chrono::seconds(60));
      return std::nullopt;
    };
    (void)fleet.await(0);
    std::_Exit(3);
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(1),
              "NCCL does not abort the connections of device . within 5 s, so "
              "this process ends: .*last operations of device 0.*all_gather "
              ".collective 1., micro-batch 3 .not done.");
}

TEST(NcclFailure, ThereIsNoNccl) {
  SKIP_UNLESS_ALONE();
  nccl::Library missing;
  missing.is_missing = true;
  missing.status = Status::error("there is no NCCL (libnccl.so.2: not found)");
  Fleet fleet(oneOfEachKind(), 60, missing);
  ASSERT_TRUE(fleet.status.ok());
  EXPECT_EQ(fleet.remark,
            "there is no NCCL (libnccl.so.2: not found): GPUs exchange their "
            "bytes through the host; install libnccl.so.2");
  EXPECT_FALSE(dynamic_cast<const GroupParticipant<nccl::Endpoint> *>(
      &fleet.ends->participant(0, 0)));
}

TEST(NcclFailure, LibrariesThatCannotBeUsed) {
  static int version = 21004;
  static const char *without = "ncclCommSplit";
  auto find = [](const char *symbol) -> void * {
    if (without && std::strcmp(symbol, without) == 0)
      return nullptr;
    static nccl::Result (*say)(int *) = [](int *value) {
      *value = version;
      return nccl::Result::success;
    };
    return reinterpret_cast<void *>(say);
  };
  nccl::Api api;
  nccl::Library old = nccl::readLibrary(find, api);
  EXPECT_FALSE(old.api);
  EXPECT_EQ(old.status.message(),
            "libnccl.so.2 is NCCL 2.10.4 and has no function ncclCommSplit; "
            "this program needs NCCL 2.18.0 or later: install a newer one");
  without = nullptr;
  EXPECT_FALSE(nccl::readLibrary(find, api).api);
  version = 21800;
  EXPECT_EQ(nccl::readLibrary(find, api).api, &api);
  EXPECT_EQ(api.version, 21800);
}

// Connections are made with communicators, and not in a step.
TEST(NcclLibrary, ConnectsBeforeTheFirstStep) {
  SKIP_WITHOUT_GPU();
  if (!nccl::loadLibrary().api)
    GTEST_SKIP() << "there is no NCCL";
  const char *said = std::getenv("NCCL_RUNTIME_CONNECT");
  ASSERT_TRUE(said);
  EXPECT_EQ(std::string(said), "0");
}

/// Two processes, of which this test plays both.
using AllProcessFacts = std::span<nccl::ProcessFacts>;
using DevicesFacts = std::span<nccl::DeviceFacts>;
std::string errorWith(
    int mine, int theirs, const std::vector<int> &gpus = {0, 1, 2, 3},
    const std::function<void(nccl::ProcessFacts &, DevicesFacts)> &change =
        nullptr) {
  nccl::Api api = *nccl::loadLibrary().api;
  api.version = mine;
  nccl::Library library{&api, false, {}};
  if (mine <= 0)
    library = {nullptr, mine == 0, Status::error("no library")};
  nccl::ProcessFacts process;
  nccl::Processes processes;
  processes.process_of = {0, 0, 1, 1};
  processes.gather_all =
      [&](std::span<const uint8_t> bytes) -> Expected<std::vector<uint8_t>> {
    std::vector<uint8_t> all(bytes.begin(), bytes.end());
    all.insert(all.end(), bytes.begin(), bytes.end());
    uint8_t *const others = all.data() + bytes.size();
    if (bytes.size() == sizeof(nccl::ProcessFacts)) {
      process.nccl = theirs;
      process.driver = reinterpret_cast<nccl::ProcessFacts *>(others)->driver;
      if (change)
        change(process, {});
      std::memcpy(others, &process, sizeof(process));
    }
    if (bytes.size() == 4 * sizeof(nccl::DeviceFacts)) {
      auto *devices = reinterpret_cast<nccl::DeviceFacts *>(others);
      const cuda::VisibleGpus visible = cuda::readVisibleGpus();
      for (size_t i = 2; i < 4; ++i)
        devices[i] = {gpus[i], visible.gpus[size_t(gpus[i])]};
      if (change)
        change(process, {devices, 4});
    }
    return all;
  };
  Traffic traffic = oneOfEachKind();
  auto made = nccl::withNccl(nullptr, traffic, gpus, processes, 60, library);
  return made ? made->remark : made.status().message();
}

TEST(NcclFailure, ProcessesWithOtherVersions) {
  SKIP_UNLESS_ALONE();
  EXPECT_EQ(errorWith(22809, 22809), "");
  EXPECT_EQ(errorWith(22809, 22705),
            "process 1 has NCCL 2.27.5, but process 0 has NCCL 2.28.9: install "
            "the same NCCL for all processes");
  EXPECT_EQ(errorWith(22809, 0),
            "process 1 has no NCCL, but process 0 has NCCL 2.28.9: install the "
            "same NCCL for all processes");
  EXPECT_EQ(errorWith(0, 0), "no library: GPUs exchange their bytes through "
                             "the host; install libnccl.so.2");
  EXPECT_EQ(errorWith(-1, -1), "no library");
}

TEST(NcclFailure, ProcessesWithOtherGpus) {
  SKIP_UNLESS_ALONE();
  constexpr int kVersion = 22809;
  const std::vector<int> own = {0, 1, 2, 3};
  const std::string model =
      std::string(cuda::readVisibleGpus().gpus[0].model) + " (sm_90)";
  EXPECT_EQ(errorWith(kVersion, kVersion, own,
                      [](nccl::ProcessFacts &, DevicesFacts devices) {
                        if (!devices.empty())
                          std::strcpy(devices[3].facts.model, "A100");
                      }),
            "process 1 has another model of GPU, A100 (sm_90), than process "
            "0, " +
                model +
                ": start the processes where GPUs are alike, or choose such "
                "GPUs by CUDA_VISIBLE_DEVICES or --devices");
  EXPECT_NE(errorWith(kVersion, kVersion, own,
                      [](nccl::ProcessFacts &, DevicesFacts devices) {
                        if (!devices.empty())
                          devices[2].facts.architecture = 80;
                      })
                .find("process 1 has another model of GPU, "),
            std::string::npos);
  EXPECT_EQ(errorWith(kVersion, kVersion, {0, 1, 2, 2},
                      [](nccl::ProcessFacts &process, DevicesFacts) {
                        process.request = 1;
                      }),
            "process 1 has 2 devices on one GPU, but process 0 has a GPU for "
            "each device: say the same --devices for all processes");
  // All were told so.
  EXPECT_EQ(errorWith(kVersion, kVersion, {0, 1, 2, 2}), "");
  EXPECT_EQ(errorWith(kVersion, kVersion, own,
                      [](nccl::ProcessFacts &process, DevicesFacts) {
                        process.driver = 12040;
                      }),
            "process 1 has a driver of CUDA 12.4, but process 0 one of CUDA "
            "13.0: each compiles the kernels in its own way");
  // What is not known is told by what needs it.
  EXPECT_EQ(errorWith(kVersion, kVersion, own,
                      [](nccl::ProcessFacts &, DevicesFacts devices) {
                        if (!devices.empty())
                          devices[3].facts = {};
                      }),
            "");
}

/// What each of several processes gets that see GPUs by these UUIDs, and have
/// one device each.
std::vector<int> dealt(const std::vector<std::vector<char>> &seen) {
  std::vector<int> process_of(seen.size()), numbers;
  std::iota(process_of.begin(), process_of.end(), 0);
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    std::vector<nccl::Sees> all;
    for (const std::vector<char> &ids : seen) {
      all.emplace_back().wanted = 1;
      for (char id : ids)
        all.back().ids[size_t(all.back().count++)].bytes[0] = id;
    }
    numbers.push_back(nccl::deal(all, int(rank)).front());
  }
  return numbers;
}

TEST(NcclGpus, EachIsGivenToOneDevice) {
  using Numbers = std::vector<int>;
  // All of a machine, seen alike and in another order.
  EXPECT_EQ(dealt({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}), (Numbers{0, 1, 2}));
  EXPECT_EQ(dealt({{1, 2}, {2, 1}}), (Numbers{0, 0}));
  // One each, as a batch system shows them; two machines.
  EXPECT_EQ(dealt({{1}, {2}, {3}}), (Numbers{0, 0, 0}));
  EXPECT_EQ(dealt({{1, 2}, {3, 4}, {1, 2}, {3, 4}}), (Numbers{0, 0, 1, 1}));
  // Who sees few chooses first.
  EXPECT_EQ(dealt({{1, 2}, {1}}), (Numbers{1, 0}));
  // None is left: the number is one too high, which its use tells.
  EXPECT_EQ(dealt({{1}, {1}}), (Numbers{0, 1}));
  EXPECT_EQ(dealt({{}, {1}}), (Numbers{0, 0}));
}

// Two devices on one GPU: as without NCCL.
TEST(NcclRoutes, OnlyGpusOfTheirOwn) {
  std::vector<nccl::Place> places = {{true, 0, 1, "a"},
                                     {true, 0, 1, "a"},
                                     {true, 1, 1, "b"},
                                     {false, 1, 1, ""}};
  Traffic traffic = oneOfEachKind();
  traffic.collectives[1].groups = {{0, 2}, {1, 3}};
  traffic.channels = {{0, 2, 8}, {1, 2, 8}, {2, 3, 8}};
  EXPECT_TRUE(nccl::chooseRoutes(places, traffic).empty());
  places[1].gpu = "c";
  nccl::Routes routes = nccl::chooseRoutes(places, traffic);
  // {1, 3} has a CPU in it.
  EXPECT_EQ(routes.split_of, (std::vector<int>{-1, 0, -1, -1, -1}));
  EXPECT_EQ(routes.splits[0], (std::vector<std::vector<int>>{{0, 2}}));
  EXPECT_EQ(routes.edge_of, (std::vector<int>{0, 1, -1}));
  places[1].machine = 2;
  places[1].gpu = "a";
  EXPECT_EQ(nccl::chooseRoutes(places, traffic).devices,
            (std::vector<int>{0, 1, 2}));
}

TEST(NcclRoutes, MessagesOfAnEdgeKeepTheirOrder) {
  std::vector<nccl::Place> places = {{true, 0, 1, "a"}, {true, 1, 1, "b"}};
  Traffic traffic;
  traffic.micro_batches = 2;
  traffic.channels = {{0, 1, 8}, {0, 1, 8}, {1, 0, 8}};
  traffic.messages = {
      {{0, 0, true, 0}, {1, 0, true, 1}, {0, 1, true, 3}, {1, 1, true, 5}},
      {{0, 0, false, 0}, {1, 0, false, 1}, {0, 1, false, 2}, {1, 1, false, 3}}};
  nccl::Routes routes = nccl::chooseRoutes(places, traffic);
  EXPECT_EQ(routes.edge_of, (std::vector<int>{0, 0, 1}));
  // What is next to each other and of one micro-batch goes together.
  EXPECT_EQ(routes.sends_more,
            (std::vector<bool>{true, false, false, false, false, false}));
  EXPECT_EQ(routes.receives_more,
            (std::vector<bool>{true, true, false, false, false, false}));
  // Received the other way round: an edge for each channel.
  std::swap(traffic.messages[1][0], traffic.messages[1][1]);
  routes = nccl::chooseRoutes(places, traffic);
  EXPECT_EQ(routes.edge_of, (std::vector<int>{0, 1, 2}));
  // Micro-batches of a channel, too: not by NCCL.
  std::swap(traffic.messages[1][1].micro_batch,
            traffic.messages[1][2].micro_batch);
  routes = nccl::chooseRoutes(places, traffic);
  EXPECT_EQ(routes.edge_of, (std::vector<int>{-1, 0, 1}));
}

// A session makes the communicator itself. Sums through NCCL and through the
// host agree.
TEST(NcclSession, UsesNcclWhereDevicesHaveGpusOfTheirOwn) {
  SKIP_UNLESS_ALONE();
  PipelineSpec spec;
  spec.devices = 2;
  spec.micro_batches = 3;
  spec.shards = 2;
  const auto artifact = openPlan(onGpus(doublingPipeline(spec)));
  for (const std::vector<int> &places :
       {std::vector<int>{}, std::vector<int>{0, 0, 0, 0}}) {
    SessionOptions options;
    options.places = places;
    options.timeout_s = 20;
    auto session = Session::create(artifact, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ((*session)->remark(), "");
    std::vector<float> x(48, 1.5f), y(48);
    StepBinding binding;
    binding.micro_batches = 3;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
    binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
    for (int step = 0; step < 3; ++step) {
      const Status status = (*session)->run(binding);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(y, std::vector<float>(48, 6));
      std::fill(y.begin(), y.end(), 0.0f);
    }
  }
}

} // namespace
} // namespace partita::test

//===- FailureTest.cpp - What GPUs lack, and what fails on them -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"
#include "test/unit/cuda/Loaded.h"
#include "test/unit/cuda/WrappedApi.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/wait.h>

namespace partita::test {
namespace {

using namespace runtime;
using Values = std::vector<float>;

void expectSays(const Status &status, const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "got: " << status.message() << "\nwithout: " << part;
}

std::string loadError(const PlanSpec &plan,
                      const std::vector<ObjectSpec> &objects, const Api &api) {
  return LoadedDevice(openPlan(plan, objects), api).status.message();
}

TEST(CudaFailure, NoDriver) {
  if (::dlopen("libcuda.so.1", RTLD_NOW))
    GTEST_SKIP() << "this machine has a driver";
  auto session = Session::create(openPlan(onGpus(doublingPipeline(1, 1))), {});
  ASSERT_FALSE(session.ok());
  expectSays(session.status(),
             {"cuda.partita': this machine has no driver for NVIDIA's GPUs",
              "libcuda.so.1", "or compile the model for another --target"});
}

TEST(CudaFailure, ADriverThatIsTooOldOrWithoutGpus) {
  SKIP_WITHOUT_GPU();
  const Api &real = **cuda::loadApi();
  {
    Api old = real;
    old.driverGetVersion = [](int *version) {
      *version = 11040;
      return Result::success;
    };
    expectSays(cuda::initialise(old),
               {"is of CUDA 11.4", "needs CUDA 12.0 or later"});
  }
  {
    Api none = real;
    none.init = [](unsigned) { return Result::no_device; };
    expectSays(cuda::initialise(none), {"but no GPU that it may use"});
  }
  {
    Api old = real;
    old.moduleLoadDataEx = [](cuda::ModuleHandle *, const void *, unsigned,
                              cuda::JitOption *, void **values) {
      std::strcpy(static_cast<char *>(values[0]), "line 3: wrong version");
      return Result::unsupported_ptx_version;
    };
    const std::string message =
        loadError(onGpus(doublingPipeline(1, 1)), testObjects(), old);
    expectSays(Status::error(message),
               {"cuda:0: '", "is too old for the artifact's kernels",
                "of CUDA ", "line 3: wrong version"});
  }
}

TEST(CudaFailure, GpusThatCannotRunTheArtifact) {
  SKIP_WITHOUT_GPU();
  const PlanSpec plan = onGpus(doublingPipeline(1, 1));
  Api turing = **cuda::loadApi();
  static Result (*read)(int *, cuda::DeviceAttribute, cuda::Ordinal);
  read = turing.deviceGetAttribute;
  turing.deviceGetAttribute = [](int *value, cuda::DeviceAttribute attribute,
                                 cuda::Ordinal ordinal) {
    const Result result = read(value, attribute, ordinal);
    if (attribute == cuda::DeviceAttribute::compute_capability_major)
      *value = 7;
    if (attribute == cuda::DeviceAttribute::compute_capability_minor)
      *value = 5;
    if (attribute == cuda::DeviceAttribute::max_shared_memory_per_block_optin)
      *value = 65536;
    return result;
  };
  expectSays(Status::error(loadError(plan, testObjects(), turing)),
             {"holds code for sm_80, which GPU 0 (", "sm_75) cannot run"});

  EXPECT_NE(loadError(plan, {}, **cuda::loadApi())
                .find("holds no code for NVIDIA's GPUs"),
            std::string::npos);
  PlanSpec unknown = plan;
  unknown.kernels = {"thrice"};
  EXPECT_NE(loadError(unknown, testObjects(), **cuda::loadApi())
                .find("no kernel 'thrice'"),
            std::string::npos);
  PlanSpec wide = plan;
  wide.kernels[0].blocks = {1};
  wide.kernels[0].threads = 16;
  wide.kernels[0].shared_bytes = 100000;
  Api small = turing;
  small.deviceGetAttribute = [](int *value, cuda::DeviceAttribute attribute,
                                cuda::Ordinal ordinal) {
    const Result result = read(value, attribute, ordinal);
    if (attribute == cuda::DeviceAttribute::max_shared_memory_per_block_optin)
      *value = 65536;
    return result;
  };
  expectSays(Status::error(loadError(wide, testObjects(), small)),
             {"kernel 'twice' needs 100000 bytes of shared memory in a block",
              "has 65536 for it"});

  SessionOptions options;
  options.places = {99};
  auto session = Session::create(openPlan(plan), options);
  ASSERT_FALSE(session.ok());
  expectSays(session.status(), {"cuda:0: there is no GPU 99: this machine has ",
                                "--devices cuda:0*4"});
}

TEST(CudaFailure, CodeThatWasCompiledForAnotherPlan) {
  SKIP_WITHOUT_GPU();
  const PlanSpec plan = withLaunches(onGpus(doublingPipeline(1, 1)));
  PlanSpec longer = plan;
  longer.kernels.back().threads *= 2;
  for (const PlanSpec *compiledFor :
       {&plan, static_cast<const PlanSpec *>(&longer)}) {
    std::vector<ObjectSpec> objects = testObjects();
    for (ObjectSpec &object : objects)
      if (object.architecture != abi::GpuArchitecture::none) {
        object.bytes = withUses(object.bytes, encode(*compiledFor));
        object.fits = false;
      }
    const std::string message = loadError(plan, objects, **cuda::loadApi());
    EXPECT_EQ(message.find("does not fit its code for GPUs") !=
                  std::string::npos,
              compiledFor != &plan)
        << message;
  }
}

TEST(CudaFailure, LessMemoryThanThePlanNeeds) {
  SKIP_WITHOUT_GPU();
  WrappedApi wrapped(**cuda::loadApi());
  PlanSpec plan = onGpus(doublingPipeline(1, 1));
  plan.programs[0].arena_bytes = int64_t(1) << 44;
  {
    LoadedDevice loaded(openPlan(plan), wrapped.api);
    expectSays(loaded.status,
               {"cuda:0: the plan needs ", "TiB on GPU 0", "arena ",
                " are free: compile the model for more devices"});
  }
  EXPECT_EQ(wrapped.calls("memAlloc"), 0);
  EXPECT_EQ(wrapped.live(), 0);
}

/// Everything that a device does: load, a step with a unit, and state.
Status useDevice(const std::shared_ptr<const Artifact> &artifact,
                 const Api &api, bool &ended) {
  if (Status status = cuda::initialise(api); !status.ok())
    return status;
  LoadedDevice loaded(artifact, api);
  if (!loaded.device)
    return loaded.status;
  Device &device = *loaded.device;
  auto instance = device.prepare(0);
  if (!instance)
    return instance.status();
  if (Status status = device.finish(); !status.ok())
    return status;
  auto more = device.allocate(64, "more");
  if (!more)
    return more.status();
  struct Observer final : TaskObserver {
    Observer() : TaskObserver(true) {}
    void finished(size_t, int64_t, int64_t) override {}
  } observer;
  Values x(16, 3), y(16), z(16);
  Queue &queue = device.queue();
  Status first;
  for (const auto &call : std::vector<std::function<Status()>>{
           [&] { return device.beginStep(); },
           [&] { return queue.copyIn(device.slot(0, 0), x.data(), 64); },
           [&] { return queue.run(**instance, 0, &observer); }, // its pieces
           [&] { return queue.run(**instance, 0, nullptr); },   // its graph
           [&] { return queue.copyFrom(device, *more, device.slot(1, 0), 64); },
           [&] { return queue.copyOut(y.data(), *more, 64); }})
    if (Status status = call(); first.ok() && !status.ok())
      first = status;
  const Status end = device.endStep();
  if (first.ok())
    first = end;
  // What has failed stays so.
  if (!first.ok())
    EXPECT_FALSE(queue.copyIn(*more, x.data(), 64).ok());
  if (first.ok())
    first = device.download(z.data(), *more, 64);
  ended = true;
  if (first.ok()) {
    EXPECT_EQ(y, Values(16, 6));
    EXPECT_EQ(z, Values(16, 6));
  }
  return first;
}

TEST(CudaFailure, EachCallThatFailsIsToldAndNothingLeaks) {
  SKIP_WITHOUT_GPU();
  PlanSpec plan = onGpus(doublingPipeline(1, 1));
  plan.addWeight(0, {4}, {1, 2, 3, 4});
  InstructionSpec copy;
  copy.type = abi::Work::Copy;
  copy.operands = {2, plan.addSlot(0, {4})};
  plan.programs[0].units[0].instructions.push_back(copy);
  const auto artifact = openPlan(plan);
  ASSERT_TRUE(artifact);
  std::map<std::string, int> calls;
  {
    WrappedApi wrapped(**cuda::loadApi());
    bool ended = false;
    const Status status = useDevice(artifact, wrapped.api, ended);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(wrapped.live(), 0);
    calls = wrapped.allCalls();
  }
  EXPECT_GE(calls.size(), 37u);
  for (const auto &[name, count] : calls)
    for (int at : {1, 2, (count + 1) / 2, count - 1, count}) {
      if (at < 1 || at > count)
        continue;
      SCOPED_TRACE(name + ", call " + std::to_string(at));
      WrappedApi wrapped(**cuda::loadApi());
      bool ended = false, failed = false;
      wrapped.answer = [&](const std::string &called,
                           int number) -> std::optional<Result> {
        if (called != name || number != at)
          return std::nullopt;
        failed = !ended;
        return called == "memAlloc" ? Result::out_of_memory
                                    : Result::launch_failed;
      };
      const Status status = useDevice(artifact, wrapped.api, ended);
      const bool releases = std::find(std::begin(WrappedApi::kReleases),
                                      std::end(WrappedApi::kReleases),
                                      name) != std::end(WrappedApi::kReleases);
      if (releases) {
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(wrapped.live(), 1);
      } else {
        // How often these are called depends on when the GPU is ready.
        if (failed && name != "eventQuery" && name != "streamQuery") {
          EXPECT_FALSE(status.ok());
        }
        EXPECT_EQ(wrapped.live(), 0);
      }
      if (!status.ok())
        EXPECT_NE(status.message().find(name == "memAlloc"
                                            ? " are free"
                                            : "CUDA_ERROR_LAUNCH_FAILED"),
                  std::string::npos)
            << status.message();
    }
}

TEST(CudaFailure, AWaitHasADeadline) {
  SKIP_WITHOUT_GPU();
  WrappedApi wrapped(**cuda::loadApi());
  DeviceOptions options;
  // Loading, on a busy machine, must not take so long.
  options.timeout_s = 1;
  LoadedDevice loaded(openPlan(onGpus(doublingPipeline(1, 1))), wrapped.api, 0,
                      options);
  ASSERT_TRUE(loaded.device) << loaded.status.message();
  Device &device = *loaded.device;
  auto instance = device.prepare(0);
  ASSERT_TRUE(instance.ok());
  wrapped.answer = [](const std::string &name, int) {
    return name == "eventQuery" ? std::optional(Result::not_ready)
                                : std::nullopt;
  };
  const Values x(16, 1);
  ASSERT_TRUE(device.beginStep().ok());
  ASSERT_TRUE(device.queue().copyIn(device.slot(0, 0), x.data(), 64).ok());
  ASSERT_TRUE(device.queue().run(**instance, 0, nullptr).ok());
  expectSays(device.endStep(), {"waited 1 s for "});
  // The GPU may be as slow as that for ever.
  wrapped.answer = [](const std::string &name, int) {
    return name == "streamQuery" ? std::optional(Result::not_ready)
                                 : std::nullopt;
  };
  loaded.device.reset();
  EXPECT_EQ(wrapped.calls("memFree"), 0);
}

// Whichever device a call fails on: the step fails, and all devices end.
TEST(CudaFailure, ACallThatFailsInAStepEndsAllDevices) {
  SKIP_WITHOUT_GPU();
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  auto *fail =
      reinterpret_cast<void (*)(uint64_t, int)>(::dlsym(driver, "cuEmuFail"));
  if (!fail)
    GTEST_SKIP() << "needs the emulator";
  const auto artifact = openPlan(onGpus(doublingPipeline(3, 4, 16, true)));
  SessionOptions options;
  options.places = {0, 0, 0};
  options.timeout_s = 20;
  Values x(64, 1), y(64);
  StepBinding binding;
  binding.micro_batches = 4;
  binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
  binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  int failures = 0;
  for (uint64_t call = 1; call < 400; call += 3) {
    auto session = Session::create(artifact, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    ASSERT_TRUE((*session)->run(binding).ok());
    fail(call, 1); // an error after which the GPU can go on
    const Status status = (*session)->run(binding);
    fail(0, 0);
    if (status.ok()) {
      EXPECT_EQ(y, Values(64, 8)) << "call " << call;
      continue;
    }
    ++failures;
    expectSays(status, {"cuda:"});
    EXPECT_NE((*session)->run(binding).message().find("failed before"),
              std::string::npos);
  }
  EXPECT_GT(failures, 20);
}

// A step that is done before another one fails has its results; those that are
// under way with it fail, too.
TEST(CudaFailure, AStepThatFailsEndsThoseThatAreUnderWay) {
  SKIP_WITHOUT_GPU();
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  auto *fail =
      reinterpret_cast<void (*)(uint64_t, int)>(::dlsym(driver, "cuEmuFail"));
  if (!fail)
    GTEST_SKIP() << "needs the emulator";
  constexpr int kSteps = Session::kMostSteps;
  for (int devices : {1, 3}) {
    const auto artifact = openPlan(onGpus(doublingPipeline(devices, 2)));
    SessionOptions options;
    options.places.assign(static_cast<size_t>(devices), 0);
    options.timeout_s = 20;
    int done = 0, failed = 0;
    // About as many calls as the steps make.
    const uint64_t stride = devices == 1 ? 5 : 40;
    for (uint64_t call = 1; call < 80 * stride; call += stride) {
      auto session = Session::create(artifact, options);
      ASSERT_TRUE(session.ok()) << session.status().message();
      std::vector<Values> x, y;
      std::vector<uint64_t> tickets;
      fail(call, 1); // an error after which the GPU can go on
      for (int i = 0; i < kSteps; ++i) {
        x.emplace_back(32, static_cast<float>(i + 1));
        y.emplace_back(32);
        StepBinding binding;
        binding.micro_batches = 2;
        binding.inputs = {reinterpret_cast<const uint8_t *>(x.back().data())};
        binding.outputs = {reinterpret_cast<uint8_t *>(y.back().data())};
        auto ticket = (*session)->submit(binding);
        if (!ticket) {
          expectSays(ticket.status(), {"has failed before"});
          break;
        }
        tickets.push_back(*ticket);
      }
      Status first;
      for (size_t i = 0; i < tickets.size(); ++i) {
        const Status status = (*session)->wait(tickets[i]);
        if (status.ok()) {
          EXPECT_EQ(y[i], Values(32, static_cast<float>((i + 1) << devices)))
              << "call " << call;
          // None that failed is followed by one that did not.
          EXPECT_TRUE(first.ok());
          ++done;
          continue;
        }
        ++failed;
        expectSays(status, {"cuda:"});
        if (!first.ok())
          EXPECT_EQ(status.message(), first.message());
        first = status;
      }
      fail(0, 0);
    }
    EXPECT_GT(done, 20);
    EXPECT_GT(failed, 20);
  }
}

/// Exits with 0 if a session ends with the right words, with kInnocent if it
/// names another unit.
constexpr int kInnocent = 4;
[[noreturn]] void runAstray(bool in_graph) {
  PlanSpec plan = onGpus(doublingPipeline(3, 2));
  InstructionSpec astray = plan.programs[1].units[0].instructions[0];
  plan.kernels.push_back("astray");
  astray.kernel = 1;
  astray.label = "/layer1/Add";
  std::vector<InstructionSpec> &unit = plan.programs[1].units[0].instructions;
  if (in_graph)
    unit.push_back(astray);
  else
    unit = {astray};
  auto session = Session::create(openPlan(plan), {});
  if (!session) {
    std::fprintf(stderr, "%s\n", session.status().message().c_str());
    std::exit(2);
  }
  Values x(32, 1), y(32);
  StepBinding binding;
  binding.micro_batches = 2;
  binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
  binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  const std::string message = (*session)->run(binding).message();
  session->reset();
  std::fprintf(stderr, "%s\n", message.c_str());
  const bool names =
      message.find(in_graph
                       ? "unit 'F1', micro-batch 0, 'double1' to '/layer1/Add' "
                         "(CUDA_LAUNCH_BLOCKING=1 tells which of 2"
                       : "unit 'F1', micro-batch 0, '/layer1/Add'") !=
          std::string::npos ||
      message.find("cuda:1") != std::string::npos;
  std::exit(message.empty() ? 3 : names ? 0 : kInnocent);
}

TEST(CudaFailure, AKernelThatGoesAstrayIsNamedAndAllDevicesEnd) {
  SKIP_WITHOUT_GPU();
  int count = 0;
  (void)(*cuda::loadApi())->deviceGetCount(&count);
  if (std::getenv("CUDA_EMU_DEVICES") == nullptr || count < 3)
    GTEST_SKIP() << "needs three GPUs that may fail: the emulator's";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (bool in_graph : {false, true}) {
    // A GPU that reads from the one that failed may be the first to tell, of a
    // unit of its own. That is rare.
    bool named = false;
    auto endsInWords = [&](int status) {
      named = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      return named || (WIFEXITED(status) && WEXITSTATUS(status) == kInnocent);
    };
    for (int i = 0; i < 8 && !named; ++i)
      EXPECT_EXIT(runAstray(in_graph), endsInWords, "cuda:");
    EXPECT_TRUE(named);
  }
}

} // namespace
} // namespace partita::test

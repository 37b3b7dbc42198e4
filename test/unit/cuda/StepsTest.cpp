//===- StepsTest.cpp - Steps that overlap on GPUs -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/session/Executor.h"
#include "runtime/session/Links.h"
#include "test/gpu-emulator/Emulator.h"
#include "test/unit/cuda/CallPlan.h"
#include "test/unit/cuda/LongUnits.h"
#include "test/unit/cuda/WrappedApi.h"

#include <array>
#include <atomic>
#include <deque>
#include <dlfcn.h>
#include <set>
#include <thread>

namespace partita::test {
namespace {

using namespace runtime;
using Values = std::vector<float>;

/// A function of the emulator; null where a GPU is real.
template <typename Function> Function *ofEmulator(const char *name) {
  void *driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  return driver ? reinterpret_cast<Function *>(::dlsym(driver, name)) : nullptr;
}

/// The kernels that GPUs have run; 0 where nobody counts them.
uint64_t launches() {
  auto *count = ofEmulator<decltype(cuEmuCount)>("cuEmuCount");
  return count ? count("launches") : 0;
}

/// A step with its bytes.
struct Fed {
  Fed(float first, int micro_batches)
      : x(countingFrom(first, 16 * static_cast<size_t>(micro_batches))),
        y(x.size()) {
    binding.micro_batches = micro_batches;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
    binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  }
  Values x, y;
  StepBinding binding;
  uint64_t ticket = 0;
};

/// The devices of a plan on one GPU, each with a thread of its own. Nobody
/// waits for the ends of steps unless the test does.
class Devices {
public:
  Devices(const PlanSpec &plan, const Api &api)
      : artifact(openPlan(plan)), mesh(artifact->plan()),
        comm(linksOf(artifact->plan(), mesh), plan.micro_batches, 20, false) {
    options.timeout_s = 20;
    options.places.assign(plan.devices.size(), 0);
    for (int64_t i = 0; i < length(artifact->plan().weights()); ++i)
      weights.push_back(artifact->weight(static_cast<int>(i)));
    auto loaded = cuda::makeCudaDriver(*artifact, options, api, {});
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    driver = std::move(*loaded);
    for (size_t i = 0; i < plan.devices.size(); ++i) {
      auto made = Executor::create(artifact->plan(), static_cast<int>(i),
                                   weights, *driver, options, {}, comm, mesh);
      EXPECT_TRUE(made.ok()) << made.status().message();
      if (made)
        all.push_back(std::move(*made));
    }
  }
  ~Devices() {
    for (auto &each : all)
      EXPECT_TRUE(each->finishSends().ok());
  }

  /// Gives all devices their parts of some steps.
  void give(const std::vector<Fed *> &steps) {
    std::vector<std::thread> threads;
    for (auto &each : all)
      threads.emplace_back([&, device = each.get()] {
        for (Fed *step : steps) {
          const Status status = device->run(step->binding);
          EXPECT_TRUE(status.ok()) << status.message();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  /// Waits for the first step that was not awaited.
  void await() {
    for (auto &each : all) {
      const Status status = each->awaitStep();
      EXPECT_TRUE(status.ok()) << status.message();
    }
  }

private:
  std::shared_ptr<const Artifact> artifact;
  const Mesh mesh;
  LocalCommunicator comm;
  SessionOptions options;
  WeightPointers weights;
  std::unique_ptr<Driver> driver;
  std::vector<std::unique_ptr<Executor>> all;
};

/// What a step may call: nothing that allocates, asks or waits.
const std::set<std::string> kCallsOfSteps = {
    "ctxSetCurrent",     "eventRecord",     "streamWaitEvent",
    "launchHostFunc",    "graphLaunch",     "launchKernel",
    "memcpyHtoDAsync",   "memcpyDtoDAsync", "memcpyDtoHAsync",
    "streamWriteValue32"};

std::map<std::string, int>
difference(std::map<std::string, int> after,
           const std::map<std::string, int> &before) {
  for (const auto &[name, count] : before)
    after[name] -= count;
  std::erase_if(after, [](const auto &each) { return each.second == 0; });
  return after;
}

constexpr int kBatches = 5;

// Library calls, graphs and messages: the host gives four steps to three
// devices, and no GPU has begun with the first of them.
TEST(CudaSteps, AreGivenWithoutAWaitAndAllocateNothing) {
  SKIP_WITHOUT_CUBLASLT();
  for (bool release : {false, true}) {
    WrappedApi wrapped(**cuda::loadApi());
    Devices devices(longUnits(3, kBatches, 2, 2, release), wrapped.api);
    std::map<std::string, int> of_one;
    int given = 0;
    float first = 1;
    for (int round = 0; round < 3; ++round) {
      std::vector<Fed> steps;
      for (int i = 0; i < Device::kMostSteps; ++i)
        steps.emplace_back(first += 10, kBatches);
      const uint64_t launched = launches();
      for (Fed &step : steps) {
        const auto before = wrapped.allCalls();
        devices.give({&step});
        const auto calls = difference(wrapped.allCalls(), before);
        for (const auto &[name, count] : calls)
          EXPECT_TRUE(kCallsOfSteps.count(name)) << name;
        EXPECT_EQ(calls.at("graphLaunch"), 3 * kBatches);
        // One step is like another, but for the first: nobody has sent before.
        if (!of_one.empty())
          EXPECT_EQ(calls, of_one);
        if (given++ > 0)
          of_one = calls;
      }
      EXPECT_EQ(launches(), launched);
      for (Fed &step : steps) {
        devices.await();
        EXPECT_EQ(step.y, expectedOf(step.x, 3));
      }
    }
  }
}

TEST(CudaSteps, OneAndAHundredAllocateTheSame) {
  SKIP_WITHOUT_CUBLASLT();
  std::map<std::string, int> made[2];
  for (bool many : {false, true}) {
    WrappedApi wrapped(**cuda::loadApi());
    {
      Devices devices(longUnits(3, 2, 2, 1), wrapped.api);
      std::deque<Fed> steps;
      for (int i = 0; i < (many ? 100 : 1); ++i) {
        if (steps.size() == Device::kMostSteps) {
          devices.await();
          EXPECT_EQ(steps.front().y, expectedOf(steps.front().x, 3));
          steps.pop_front();
        }
        steps.emplace_back(static_cast<float>(i), 2);
        devices.give({&steps.back()});
      }
      for (Fed &step : steps) {
        devices.await();
        EXPECT_EQ(step.y, expectedOf(step.x, 3));
      }
    }
    EXPECT_EQ(wrapped.live(), 0);
    made[many] = wrapped.allCalls();
    for (const char *query : {"eventQuery", "streamQuery"})
      made[many].erase(query);
    std::erase_if(made[many], [](const auto &each) {
      return kCallsOfSteps.count(each.first) > 0;
    });
  }
  EXPECT_EQ(made[false], made[true]);
}

std::vector<cuda::DeviceAddress> brought_to;
decltype(Api::memcpyHtoDAsync) real_copy;

// The first step cannot end, and the input of the second one is on the GPU.
TEST(CudaSteps, InputsComeWhileTheStepBeforeIsAtWork) {
  SKIP_WITHOUT_GPU();
  auto *enqueue = ofEmulator<decltype(cuEmuEnqueue)>("cuEmuEnqueue");
  auto *bytesAt = ofEmulator<decltype(cuEmuBytes)>("cuEmuBytes");
  if (!enqueue || !bytesAt)
    GTEST_SKIP() << "needs the emulator, which tells what is on a GPU";
  Api api = **cuda::loadApi();
  real_copy = api.memcpyHtoDAsync;
  api.memcpyHtoDAsync = [](cuda::DeviceAddress to, const void *from,
                           size_t bytes, cuda::StreamHandle stream) {
    brought_to.push_back(to);
    return real_copy(to, from, bytes, stream);
  };
  LoadedDevice loaded(openPlan(onGpus(doublingPipeline(1, 1))), api);
  ASSERT_TRUE(loaded.device) << loaded.status.message();
  Device &device = *loaded.device;
  Queue &queue = device.queue();
  auto instance = device.prepare(0);
  ASSERT_TRUE(instance.ok() && device.finish().ok());
  const cuda::StreamHandle compute =
      static_cast<cuda::CudaDevice &>(device).cudaQueue().stream();

  std::atomic<bool> open = false;
  CuEmuOperation gate = {};
  gate.name = "a gate";
  gate.data = &open;
  gate.ready = [](void *data) {
    return int(static_cast<std::atomic<bool> *>(data)->load());
  };
  gate.run = [](void *) -> const char * { return nullptr; };
  Values x[2] = {Values(16, 3), Values(16, 5)}, y[2] = {Values(16), Values(16)};
  Event ends[2];
  brought_to.clear();
  for (int i : {0, 1}) {
    ASSERT_TRUE(device.beginStep().ok());
    ASSERT_TRUE(queue.copyIn(device.slot(0, 0), x[i].data(), 64).ok());
    ASSERT_TRUE(queue.run(**instance, 0, nullptr).ok());
    if (i == 0)
      ASSERT_EQ(enqueue(reinterpret_cast<CUstream_st *>(compute), &gate), 0);
    ASSERT_TRUE(queue.copyOut(y[i].data(), device.slot(1, 0), 64).ok());
    ends[i] = device.closeStep();
  }
  ASSERT_EQ(brought_to.size(), 2u);
  // The GPU does what it can.
  for (int i = 0; i < 2000; ++i)
    ASSERT_EQ(api.streamQuery(compute), Result::not_ready);
  EXPECT_EQ(y[0], Values(16));
  const void *there = bytesAt(brought_to[1], 64, 1);
  ASSERT_NE(there, nullptr) << "nothing came";
  EXPECT_EQ(std::memcmp(there, x[1].data(), 64), 0);

  open = true;
  for (int i : {0, 1}) {
    ASSERT_TRUE(device.awaitStep(ends[i]).ok());
    EXPECT_EQ(y[i], Values(16, 2 * x[i][0]));
  }
}

// A session of one GPU works in no thread but the caller's.
TEST(CudaSteps, OfOneGpuAreGivenByTheCaller) {
  SKIP_WITHOUT_CUBLASLT();
  SessionOptions options;
  options.places = {0};
  auto made = Session::create(openPlan(longUnits(1, kBatches, 2, 2)), options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  Session &session = **made;
  EXPECT_TRUE(session.overlapsSteps());
  for (std::array<size_t, 4> order :
       {std::array<size_t, 4>{0, 1, 2, 3}, {3, 0, 2, 1}, {1, 3, 2, 0}}) {
    std::vector<Fed> steps;
    const uint64_t launched = launches();
    for (int i = 0; i < Session::kMostSteps; ++i) {
      steps.emplace_back(static_cast<float>(10 * i), kBatches);
      auto ticket = session.submit(steps.back().binding);
      ASSERT_TRUE(ticket.ok()) << ticket.status().message();
      steps.back().ticket = *ticket;
    }
    EXPECT_EQ(launches(), launched);
    EXPECT_FALSE(session.submit(steps[0].binding).ok());
    for (size_t i : order) {
      const Status status = session.wait(steps[i].ticket);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(steps[i].y, expectedOf(steps[i].x, 1));
    }
  }
}

// Profiles of steps that overlap have the tasks of each step.
TEST(CudaSteps, EachTellsItsOwnTasks) {
  SKIP_WITHOUT_CUBLASLT();
  SessionOptions options;
  options.places = {0, 0};
  options.profile = true;
  auto made = Session::create(openPlan(longUnits(2, kBatches, 2, 2)), options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto now = [] {
    return std::chrono::nanoseconds(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  std::vector<Fed> steps;
  std::vector<int64_t> submitted;
  for (int i = 0; i < Session::kMostSteps; ++i) {
    steps.emplace_back(static_cast<float>(10 * i), i % 2 ? kBatches : 2);
    submitted.push_back(now());
    auto ticket = (*made)->submit(steps.back().binding);
    ASSERT_TRUE(ticket.ok()) << ticket.status().message();
    steps.back().ticket = *ticket;
  }
  for (Fed &step : steps) {
    ASSERT_TRUE((*made)->wait(step.ticket).ok());
    EXPECT_EQ(step.y, expectedOf(step.x, 2));
    int tasks = 0;
    for (const ProfileEvent &event : (*made)->profile())
      if (event.instruction >= 0) {
        ++tasks;
        EXPECT_LT(event.micro_batch, step.binding.micro_batches);
        EXPECT_LE(event.begin_ns, event.end_ns);
        // A GPU's times are as late as the host was when it compared clocks.
        EXPECT_GE(event.begin_ns, submitted[&step - steps.data()]);
        EXPECT_LE(event.end_ns, now());
      }
    EXPECT_EQ(tasks, 2 * 4 * step.binding.micro_batches);
    for (int64_t ns : (*made)->busyNs())
      EXPECT_GT(ns, 0);
  }
}

// Drivers that cannot write numbers copy them.
TEST(CudaSteps, NumbersOfUnitsAreWrittenOrCopied) {
  SKIP_WITHOUT_GPU();
  static decltype(Api::deviceGetAttribute) real;
  real = (*cuda::loadApi())->deviceGetAttribute;
  for (bool writes : {true, false}) {
    WrappedApi wrapped(**cuda::loadApi());
    Api api = wrapped.api;
    if (!writes)
      api.deviceGetAttribute = [](int *value, cuda::DeviceAttribute attribute,
                                  cuda::Ordinal ordinal) {
        const Result result = real(value, attribute, ordinal);
        if (attribute == cuda::DeviceAttribute::can_use_64_bit_stream_mem_ops)
          *value = 0;
        return result;
      };
    LoadedDevice loaded(openPlan(onGpus(doublingPipeline(1, 1))), api);
    ASSERT_TRUE(loaded.device) << loaded.status.message();
    Device &device = *loaded.device;
    auto instance = device.prepare(0);
    ASSERT_TRUE(instance.ok() && device.finish().ok());
    const Values x(16, 1);
    const int written = wrapped.calls("streamWriteValue32"),
              copied = wrapped.calls("memcpyDtoHAsync");
    for (int i = 0; i < 2000; ++i) {
      ASSERT_TRUE(device.beginStep().ok());
      ASSERT_TRUE(device.queue().copyIn(device.slot(0, 0), x.data(), 64).ok());
      ASSERT_TRUE(device.queue().run(**instance, 0, nullptr).ok());
      const Event end = device.closeStep();
      if (i == 1999)
        wrapped.answer = [](const std::string &name, int) {
          return name == "eventQuery" ? std::optional(Result::launch_failed)
                                      : std::nullopt;
        };
      const Status status = device.awaitStep(end);
      EXPECT_EQ(status.ok(), i < 1999) << status.message();
    }
    wrapped.answer = nullptr;
    EXPECT_EQ(wrapped.calls("streamWriteValue32") - written, writes ? 2000 : 0);
    EXPECT_EQ(wrapped.calls("memcpyDtoHAsync") - copied, writes ? 0 : 2000);
  }
}

} // namespace
} // namespace partita::test

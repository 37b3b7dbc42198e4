//===- DeviceTest.cpp - What GPUs do beside what all devices do -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"
#include "test/gpu-emulator/Emulator.h"
#include "test/unit/cuda/Loaded.h"
#include "test/unit/cuda/WrappedApi.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>

namespace partita::test {
namespace {

using namespace runtime;
using Values = std::vector<float>;

Values counting(size_t count) {
  Values values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i + 1);
  return values;
}

Values read(Device &device, int slot, size_t count) {
  Values values(count);
  Status status = device.download(values.data(), device.slot(slot, 0),
                                  count * sizeof(float));
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

/// Two devices, each with its half of the rows of a weight.
struct Cut {
  Cut() {
    const int d = plan.addDevice();
    plan.kernels = {"twice"};
    plan.inputs = {{"x", abi::DType::f32, {2, 5}}};
    plan.outputs = {{"y", abi::DType::f32, {2, 3}}};
    weight = plan.addWeight(d, {2, 5}, counting(10));
    whole = plan.addWeight(d, {6}, counting(6));
    only_loaded = plan.addWeight(d, {6}, counting(6));
    part = plan.addSlot(d, {2, 3}, abi::Space::constant);
    doubled = plan.addSlot(d, {2, 3}, abi::Space::constant);
    other = plan.addSlot(d, {6}, abi::Space::constant);
    x = plan.addSlot(d, {2, 5});
    y = plan.addSlot(d, {2, 3});
    z = plan.addSlot(d, {6});
    InstructionSpec slice, twice, copy;
    slice.type = abi::Work::Slice;
    slice.operands = {weight, part};
    slice.rows = 2;
    slice.part = 3;
    slice.axes = {0};
    twice.type = abi::Work::Dispatch;
    twice.operands = {part, doubled};
    twice.extent = 6;
    copy.type = abi::Work::Copy;
    copy.operands = {only_loaded, other};
    plan.programs[d].load = {slice, twice, copy};
    slice.operands = {x, y};
    copy.operands = {whole, z};
    plan.programs[d].units.push_back({"F0", 0, {slice, copy}});
    plan.programs[d].actions = {{abi::ActionKind::load_input, 0, 0, x},
                                {abi::ActionKind::run, 0, 0},
                                {abi::ActionKind::store_output, 0, 0, y}};
    plan.addAxes({{"tensor", 2}});
    plan = onGpus(plan);
  }
  PlanSpec plan;
  int weight, whole, only_loaded, part, doubled, other, x, y, z;
};

TEST(CudaDevice, HasItsPartOfWeightsAndWhatIsComputedOfThem) {
  SKIP_WITHOUT_GPU();
  const Cut cut;
  const auto artifact = openPlan(cut.plan);
  ASSERT_TRUE(artifact);
  const Values parts[] = {{1, 2, 3, 6, 7, 8}, {4, 5, 0, 9, 10, 0}};
  for (int index : {0, 1}) {
    LoadedDevice loaded(artifact, **cuda::loadApi(), index);
    ASSERT_TRUE(loaded.device) << loaded.status.message();
    Device &device = *loaded.device;
    Values twice = parts[index];
    for (float &value : twice)
      value *= 2;
    EXPECT_EQ(read(device, cut.part, 6), parts[index]);
    EXPECT_EQ(read(device, cut.doubled, 6), twice);
    EXPECT_EQ(read(device, cut.other, 6), counting(6));
    // What is cut, or only loaded, does not stay on the device.
    EXPECT_EQ(device.slot(cut.weight, 0), nullptr);
    EXPECT_EQ(device.memory().parameters, 3 * 64 + 256);

    auto instance = device.prepare(0);
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    ASSERT_TRUE(device.finish().ok());
    const Values x = counting(10);
    Values y(6);
    ASSERT_TRUE(device.beginStep().ok());
    Queue &queue = device.queue();
    ASSERT_TRUE(queue.copyIn(device.slot(cut.x, 0), x.data(), 40).ok());
    ASSERT_TRUE(queue.run(**instance, 0, nullptr).ok());
    ASSERT_TRUE(queue.copyOut(y.data(), device.slot(cut.y, 0), 24).ok());
    const Status status = device.endStep();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(y, parts[index]);
    EXPECT_EQ(read(device, cut.z, 6), counting(6));
  }
}

struct Stepper {
  std::unique_ptr<Session> session;
  Values x, y;
  Status status;

  Stepper(const PlanSpec &plan, const SessionOptions &options)
      : x(static_cast<size_t>(product(plan.inputs[0].shape) *
                              plan.micro_batches)),
        y(x.size()), micro_batches(plan.micro_batches) {
    auto made = Session::create(openPlan(plan), options);
    status = made.status();
    if (made)
      session = std::move(*made);
  }
  bool step(float value) {
    x.assign(x.size(), value);
    StepBinding binding;
    binding.micro_batches = micro_batches;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
    binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
    status = session->run(binding);
    return status.ok();
  }

private:
  int micro_batches;
};

TEST(CudaDevice, SeveralUseOneGpu) {
  SKIP_WITHOUT_GPU();
  for (bool release : {false, true}) {
    SessionOptions options;
    options.places = {0, 0, 0, 0};
    Stepper run(onGpus(doublingPipeline(4, 6, 3000, release)), options);
    ASSERT_TRUE(run.session) << run.status.message();
    // They have more streams than a GPU has queues by default.
    EXPECT_NE(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), nullptr);
    for (float value : {1.0f, 2.0f, 3.0f}) {
      ASSERT_TRUE(run.step(value)) << run.status.message();
      EXPECT_EQ(run.y, Values(run.y.size(), 16 * value));
    }
  }
}

// One of several chunks of pinned memory in each direction, and what was copied
// to the host is copied back.
TEST(CudaDevice, CopiesMoreThanPinnedMemoryHolds) {
  SKIP_WITHOUT_GPU();
  LoadedDevice loaded(openPlan(onGpus(doublingPipeline(1, 1))),
                      **cuda::loadApi());
  ASSERT_TRUE(loaded.device) << loaded.status.message();
  const size_t bytes = (9 << 20) + 5;
  auto here = loaded.device->allocate(bytes, "bytes"),
       there = loaded.device->allocate(bytes, "bytes");
  ASSERT_TRUE(here.ok() && there.ok());
  std::vector<uint8_t> sent(bytes), middle(bytes), got(bytes);
  for (size_t i = 0; i < bytes; ++i)
    sent[i] = static_cast<uint8_t>(i * 31 >> 3);
  Queue &queue = loaded.device->queue();
  ASSERT_TRUE(queue.copyIn(*here, sent.data(), bytes).ok());
  ASSERT_TRUE(queue.copyOut(middle.data(), *here, bytes).ok());
  ASSERT_TRUE(queue.copyIn(*there, middle.data(), bytes).ok());
  ASSERT_TRUE(queue.copyOut(got.data(), *there, bytes).ok());
  ASSERT_TRUE(queue.synchronize(queue.record()).ok());
  EXPECT_TRUE(got == sent);
  ASSERT_TRUE(loaded.device->download(middle.data(), *there, bytes).ok());
  EXPECT_TRUE(middle == sent);
}

// More copies are under way than there are records of them, and the stream that
// computes is done before the one that takes a copy from pinned memory.
TEST(CudaDevice, ACopyKeepsItsRecordUntilItIsDone) {
  SKIP_WITHOUT_GPU();
  WrappedApi wrapped(**cuda::loadApi());
  LoadedDevice loaded(openPlan(onGpus(doublingPipeline(1, 1))), wrapped.api);
  ASSERT_TRUE(loaded.device) << loaded.status.message();
  auto &device = static_cast<cuda::CudaDevice &>(*loaded.device);
  uint8_t *const in = device.slot(0, 0), *const out = device.slot(1, 0);
  const Values sent(16, 7);
  Values other(16, 3), got(16);
  ASSERT_TRUE(device.upload(out, sent.data(), 64).ok());
  wrapped.answer = [](const std::string &name, int) {
    return name == "streamQuery" ? std::optional(Result::success)
                                 : std::nullopt;
  };
  Queue &queue = device.queue();
  ASSERT_TRUE(queue.copyOut(got.data(), out, 64).ok());
  std::atomic<bool> done = false;
  std::thread gpu([&] {
    // Work goes on.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (void)device.gpu().use();
    while (!done)
      (void)(*cuda::loadApi())->streamQuery(device.cudaQueue().stream());
  });
  bool ok = true;
  for (int i = 0; i < 2000; ++i)
    ok &= queue.copyIn(in, other.data(), 64).ok();
  done = true;
  gpu.join();
  EXPECT_TRUE(ok);
  EXPECT_TRUE(device.endStep().ok());
  EXPECT_EQ(got, sent);
}

// There are far more steps than events.
void expectNothingIsAllocated(const PlanSpec &plan, const char *launch) {
  WrappedApi wrapped(**cuda::loadApi());
  LoadedDevice loaded(openPlan(plan), wrapped.api);
  ASSERT_TRUE(loaded.device) << loaded.status.message();
  Device &device = *loaded.device;
  auto instance = device.prepare(0);
  ASSERT_TRUE(instance.ok() && device.finish().ok());
  auto step = [&](float value) {
    const Values x(16, value);
    Values y(16);
    EXPECT_TRUE(device.beginStep().ok());
    Queue &queue = device.queue();
    EXPECT_TRUE(queue.copyIn(device.slot(0, 0), x.data(), 64).ok());
    EXPECT_TRUE(queue.run(**instance, 0, nullptr).ok());
    EXPECT_TRUE(queue.copyOut(y.data(), device.slot(1, 0), 64).ok());
    EXPECT_TRUE(device.endStep().ok());
    EXPECT_EQ(y, Values(16, 2 * value));
  };
  step(1);
  const auto before = wrapped.allCalls();
  for (int i = 0; i < 3000; ++i)
    step(static_cast<float>(i));
  // Nothing is made, given back or looked up; and no call waits for the GPU.
  for (const auto &[name, count] : wrapped.allCalls())
    if (auto known = before.find(name);
        known == before.end() || known->second != count)
      EXPECT_TRUE(name == "ctxSetCurrent" || name == "eventQuery" ||
                  name == "streamQuery" || name == "eventRecord" ||
                  name == "streamWaitEvent" || name == "launchHostFunc" ||
                  name == launch || name == "memcpyHtoDAsync" ||
                  name == "memcpyDtoDAsync" || name == "memcpyDtoHAsync" ||
                  name == "streamWriteValue32")
          << name;
}

TEST(CudaDevice, AStepAllocatesNothing) {
  SKIP_WITHOUT_GPU();
  PlanSpec plan = onGpus(doublingPipeline(1, 1));
  expectNothingIsAllocated(plan, "launchKernel");
  std::vector<InstructionSpec> &unit = plan.programs[0].units[0].instructions;
  unit.push_back(unit[0]);
  expectNothingIsAllocated(plan, "graphLaunch");
}

/// Two devices on one GPU that give each other values, copied in many pieces.
class Exchange {
public:
  explicit Exchange(const Api &api)
      : artifact(openPlan(onGpus(doublingPipeline(1, 1)))),
        first(artifact, api), second(artifact, api) {
    for (LoadedDevice *each : {&first, &second}) {
      EXPECT_TRUE(each->device) << each->status.message();
      instances.push_back(*each->device->prepare(0));
      for (int i = 0; i < kPieces; ++i)
        places.push_back(*each->device->allocate(64, "a piece"));
    }
  }

  /// Two steps, of which the second is begun while the first is at work.
  /// Whether all values are right.
  bool run() {
    Step steps[] = {Step(++value), Step(++value)};
    Event read;
    for (Step &step : steps)
      read = give(step, read);
    for (Step &step : steps)
      EXPECT_TRUE(first.device->awaitStep(step.ends[0]).ok());
    const Values state = ::partita::test::read(*first.device, 1, 16);
    for (Step &step : steps)
      EXPECT_TRUE(second.device->awaitStep(step.ends[1]).ok());
    return steps[0].isRight() && steps[1].isRight() &&
           state == steps[1].back[0];
  }

  static constexpr int kPieces = 5;

private:
  struct Step {
    explicit Step(float value) : got(kPieces, Values(16)), back(got) {
      for (int i = 0; i < kPieces; ++i)
        sent.emplace_back(16, value * 10 + static_cast<float>(i));
    }
    bool isRight() const {
      bool right =
          got == sent && back[0] == Values(16, 2 * sent[kPieces - 1][0]);
      for (int i = 1; i < kPieces; ++i)
        right &= back[i] == sent[i];
      return right;
    }
    std::vector<Values> sent, got, back;
    Event ends[2];
  };

  /// Begins when the second device has `read` what the step before sent.
  /// Returns when it has read what this one sends.
  Event give(Step &step, const Event &read) {
    Queue &one = first.device->queue(), &two = second.device->queue();
    uint8_t *const in = first.device->slot(0, 0), *const out =
                                                      first.device->slot(1, 0);
    bool ok = first.device->beginStep().ok() && second.device->beginStep().ok();
    ok &= one.wait(read).ok();
    for (int i = 0; i < kPieces; ++i)
      ok &= one.copyIn(places[i], step.sent[i].data(), 64).ok();
    for (int i = 0; i < kPieces; ++i)
      ok &= one.copyOut(step.got[i].data(), places[i], 64).ok();
    // The second device has what the first one computes.
    ok &= one.copyFrom(*first.device, in, places[kPieces - 1], 64).ok();
    ok &= one.run(*instances[0], 0, nullptr).ok();
    ok &= two.wait(one.record()).ok();
    for (int i = 0; i < kPieces; ++i)
      ok &= two.copyFrom(*first.device, places[kPieces + i],
                         i ? places[i] : out, 64)
                .ok();
    const Event copied = two.record();
    for (int i = 0; i < kPieces; ++i)
      ok &= two.copyOut(step.back[i].data(), places[kPieces + i], 64).ok();
    step.ends[0] = first.device->closeStep();
    step.ends[1] = second.device->closeStep();
    EXPECT_TRUE(ok);
    return copied;
  }

  std::shared_ptr<const Artifact> artifact;
  LoadedDevice first, second;
  std::vector<Instance *> instances;
  std::vector<uint8_t *> places;
  float value = 0;
};

// What each wait of a stream is for: without it a step goes wrong sooner or
// later, where streams run in any order.
TEST(CudaDevice, EveryWaitIsNeeded) {
  SKIP_WITHOUT_GPU();
  const char *seed = std::getenv("CUDA_EMU_SEED");
  if (!seed || std::string(seed) != "1")
    GTEST_SKIP() << "takes long: only on the emulator, with seed 1";
  // Whatever other tests have drawn.
  auto *reseed = reinterpret_cast<decltype(cuEmuSeed) *>(
      ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuEmuSeed"));
  ASSERT_NE(reseed, nullptr);
  reseed(1);
  WrappedApi wrapped(**cuda::loadApi());
  Exchange exchange(wrapped.api);
  constexpr int kRuns = 400;
  for (int i = 0; i < kRuns; ++i)
    ASSERT_TRUE(exchange.run());
  int before = wrapped.calls("streamWaitEvent");
  ASSERT_TRUE(exchange.run());
  const int waits = wrapped.calls("streamWaitEvent") - before;
  int harmless = 0;
  for (int dropped = 1; dropped <= waits; ++dropped) {
    bool right = true;
    for (int i = 0; i < kRuns && right; ++i) {
      const int begin = wrapped.calls("streamWaitEvent");
      wrapped.answer = [=](const std::string &name, int number) {
        return name == "streamWaitEvent" && number == begin + dropped
                   ? std::optional(Result::success)
                   : std::nullopt;
      };
      right = exchange.run();
      wrapped.answer = nullptr;
    }
    // What came too late does not remain.
    EXPECT_TRUE(exchange.run());
    harmless += right;
  }
  // The first pieces of the first step find their two chunks empty: on the way
  // into the first device, and out of each. Those of the second step come so
  // early, beside the first step, that they are there in any order; and their
  // chunks on the way out have long been empty. In each step, the event in the
  // middle and that at the end both put copies to the host of the first device
  // behind what it computes; one of them would do. At the end of a step of the
  // second device nothing comes behind its copies to the host.
  EXPECT_EQ(harmless, 2 * (3 * 2 + 2 + 1)) << "of " << waits;
}

} // namespace
} // namespace partita::test

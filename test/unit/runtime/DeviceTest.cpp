//===- DeviceTest.cpp - What every kind of device must do -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Driver.h"
#include "test/unit/runtime/LoadedPlan.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <thread>

namespace partita::test {
namespace {

using namespace runtime;

/// Those that every machine has, and the one that is tested.
std::vector<abi::DeviceKind> testedKinds() {
  std::vector<abi::DeviceKind> kinds = {abi::DeviceKind::cpu,
                                        abi::DeviceKind::remote_cpu};
  if (std::find(kinds.begin(), kinds.end(), testedKind()) == kinds.end())
    kinds.push_back(testedKind());
  return kinds;
}
const std::vector<abi::DeviceKind> kKinds = testedKinds();

/// A device of a kind that doubles 16 floats.
struct Doubler {
  explicit Doubler(abi::DeviceKind kind, double timeout_s = 60,
                   int micro_batches = 1, int copies = 1) {
    PlanSpec plan = doublingPipeline({1, micro_batches, 16, false, copies});
    plan.devices[0].kind = kind;
    const std::string path = temporary("device.partita");
    writeArtifact(path, plan, testObjects());
    artifact = *Artifact::open(path);
    ::unlink(path.c_str());
    DeviceOptions options;
    options.timeout_s = timeout_s;
    auto loaded = findDeviceType(kind)->load(*artifact, options);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    driver = std::move(*loaded);
    auto made = driver->create(artifact->plan(), 0, weights, options, {});
    // With a short deadline: a slow machine needs longer to load.
    EXPECT_TRUE(made.ok() || timeout_s < 60) << made.status().message();
    if (made)
      device = std::move(*made);
  }
  Queue &queue() { return device->queue(); }
  uint8_t *allocate(size_t bytes) {
    auto made = device->allocate(bytes, "bytes of a test");
    EXPECT_TRUE(made.ok());
    return *made;
  }

  std::shared_ptr<const Artifact> artifact;
  WeightPointers weights;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<Device> device;
};

/// A queue whose only event comes when the test says so.
class Gate final : public Queue {
public:
  double timeout_s = 60;
  void open(Status with = Status()) { promise.set_value(std::move(with)); }
  Event event() { return {this, 1}; }
  Status copyIn(uint8_t *, const void *, size_t) override { return no(); }
  Status copyOut(void *, const uint8_t *, size_t) override { return no(); }
  Status copyFrom(Device &, uint8_t *, const uint8_t *, size_t) override {
    return no();
  }
  Status run(Instance &, int, TaskObserver *) override { return no(); }
  Event record() override { return event(); }
  Status wait(const Event &) override { return no(); }
  Status synchronize(const Event &) override {
    if (future.wait_for(std::chrono::duration<double>(timeout_s)) ==
        std::future_status::timeout)
      return Status::error("waited " + std::to_string(timeout_s) +
                           " s at the gate");
    return future.get();
  }

private:
  static Status no() { return Status::error("a gate does no work"); }
  std::promise<Status> promise;
  std::shared_future<Status> future = promise.get_future().share();
};

std::vector<uint8_t> bytesOf(size_t count, unsigned seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<uint8_t>(i * 7 + seed);
  return bytes;
}

class DeviceKinds : public ::testing::TestWithParam<abi::DeviceKind> {};

TEST_P(DeviceKinds, CopiesInAndOutInOrder) {
  Doubler made(GetParam());
  for (size_t count : {size_t(0), size_t(1), size_t(4097), size_t(1) << 20}) {
    uint8_t *there = made.allocate(count + 1);
    std::vector<uint8_t> first = bytesOf(count, 1), second = bytesOf(count, 2),
                         a(count), b(count);
    ASSERT_TRUE(made.queue().copyIn(there, first.data(), count).ok());
    ASSERT_TRUE(made.queue().copyOut(a.data(), there, count).ok());
    ASSERT_TRUE(made.queue().copyIn(there, second.data(), count).ok());
    ASSERT_TRUE(made.queue().copyOut(b.data(), there, count).ok());
    ASSERT_TRUE(made.queue().synchronize(made.queue().record()).ok());
    EXPECT_EQ(a, first);
    EXPECT_EQ(b, second);
  }
}

TEST_P(DeviceKinds, UploadsAndDownloadsStateOfSlots) {
  Doubler made(GetParam());
  std::vector<uint8_t> state = bytesOf(64, 3), read(64);
  ASSERT_TRUE(
      made.device->upload(made.device->slot(1, 0), state.data(), 64).ok());
  ASSERT_TRUE(
      made.device->download(read.data(), made.device->slot(1, 0), 64).ok());
  EXPECT_EQ(read, state);
}

TEST_P(DeviceKinds, RunsAUnitAndTellsItsTasks) {
  struct Observer final : TaskObserver {
    Observer() : TaskObserver(true) {}
    void finished(size_t task, int64_t begin, int64_t end) override {
      tasks.push_back(task);
      inOrder &= last <= begin && begin <= end;
      last = end;
    }
    std::vector<size_t> tasks;
    int64_t last = 0;
    bool inOrder = true;
  } observer;
  observer.tasks.reserve(8);
  Doubler made(GetParam());
  ASSERT_TRUE(made.device->letMove({}).ok());
  auto instance = made.device->prepare(0);
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  EXPECT_EQ(*made.device->prepare(0), *instance);
  ASSERT_TRUE(made.device->finish().ok());
  for (int step = 0; step < 3; ++step) {
    std::vector<float> x(16, 1.5f + step), y(16);
    ASSERT_TRUE(made.device->beginStep().ok());
    Queue &queue = made.queue();
    ASSERT_TRUE(queue.copyIn(made.device->slot(0, 0), x.data(), 64).ok());
    ASSERT_TRUE(queue.run(**instance, 0, &observer).ok());
    ASSERT_TRUE(queue.copyOut(y.data(), made.device->slot(1, 0), 64).ok());
    ASSERT_TRUE(made.device->endStep().ok());
    EXPECT_EQ(y, std::vector<float>(16, 3.0f + 2 * step));
    EXPECT_GT(made.device->busyNs(), 0);
    EXPECT_FALSE(made.device->metNan());
  }
  EXPECT_EQ(observer.tasks, std::vector<size_t>(3, 0));
  EXPECT_TRUE(observer.inOrder);
  EXPECT_EQ(made.device->memory().arena,
            made.artifact->plan().programs()->Get(0)->arena_bytes());
}

TEST_P(DeviceKinds, AnInstanceRunsOnEveryCopyOfItsFrames) {
  constexpr int kMicroBatches = 7, kCopies = 3;
  Doubler made(GetParam(), 60, kMicroBatches, kCopies);
  for (int slot : {0, 1})
    for (int m = 0; m < kMicroBatches; ++m) {
      EXPECT_EQ(made.device->slot(slot, m),
                made.device->slot(slot, m % kCopies));
      EXPECT_NE(made.device->slot(slot, m), made.device->slot(slot, m + 1));
    }
  ASSERT_TRUE(made.device->letMove({}).ok());
  auto instance = made.device->prepare(0);
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  ASSERT_TRUE(made.device->finish().ok());
  std::vector<std::vector<float>> x, y;
  for (int m = 0; m < kMicroBatches; ++m) {
    x.emplace_back(16, 1.0f + m);
    y.emplace_back(16);
  }
  // Each group fills all copies before it computes any, backwards.
  Queue &queue = made.queue();
  ASSERT_TRUE(made.device->beginStep().ok());
  for (int first = 0; first < kMicroBatches; first += kCopies) {
    const int end = std::min(first + kCopies, kMicroBatches);
    for (int m = first; m < end; ++m)
      ASSERT_TRUE(queue.copyIn(made.device->slot(0, m), x[m].data(), 64).ok());
    for (int m = end; m-- > first;)
      ASSERT_TRUE(queue.run(**instance, m, nullptr).ok());
    for (int m = first; m < end; ++m)
      ASSERT_TRUE(queue.copyOut(y[m].data(), made.device->slot(1, m), 64).ok());
  }
  ASSERT_TRUE(made.device->endStep().ok());
  for (int m = 0; m < kMicroBatches; ++m)
    EXPECT_EQ(y[m], std::vector<float>(16, 2.0f + 2 * m)) << m;
}

TEST_P(DeviceKinds, WorkBeginsWhenTheEventItWaitsForIsThere) {
  Gate gate;
  std::atomic<bool> done = false;
  std::vector<uint8_t> sent = bytesOf(64, 4), got(64);
  std::thread host([&, kind = GetParam()] {
    Doubler made(kind);
    uint8_t *there = made.allocate(64);
    EXPECT_TRUE(made.queue().wait(gate.event()).ok());
    EXPECT_TRUE(made.queue().copyIn(there, sent.data(), 64).ok());
    EXPECT_TRUE(made.queue().copyOut(got.data(), there, 64).ok());
    EXPECT_TRUE(made.queue().synchronize(made.queue().record()).ok());
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(done);
  std::fill(sent.begin(), sent.end(), uint8_t(9)); // not read yet
  gate.open();
  host.join();
  EXPECT_EQ(got, sent);
}

TEST_P(DeviceKinds, WhatFailsIsToldAndNothingComesAfterIt) {
  Doubler made(GetParam());
  Gate gate;
  gate.open(Status::error("the other device is gone"));
  uint8_t *there = made.allocate(64);
  std::vector<uint8_t> sent = bytesOf(64, 5), got(64);
  Status status = made.queue().wait(gate.event());
  if (status.ok())
    status = made.queue().copyIn(there, sent.data(), 64);
  if (status.ok())
    status = made.queue().copyOut(got.data(), there, 64);
  if (status.ok())
    status = made.queue().synchronize(made.queue().record());
  EXPECT_EQ(status.message(), "the other device is gone");
  EXPECT_EQ(got, std::vector<uint8_t>(64));
}

TEST_P(DeviceKinds, WaitsHaveADeadline) {
  if (findDeviceType(GetParam())->is_host)
    return;  // it has done what it was given
  Gate gate; // a queue waits there until it is gone
  double timeout_s = 0.05;
  auto made = std::make_unique<Doubler>(GetParam(), timeout_s);
  for (; !made->device; made = std::make_unique<Doubler>(GetParam(), timeout_s))
    timeout_s *= 2;
  // A queue may wait in the call, or later.
  gate.timeout_s = 2 * timeout_s;
  Status status = made->queue().wait(gate.event());
  if (status.ok())
    status = made->queue().synchronize(made->queue().record());
  EXPECT_NE(status.message().find("waited "), std::string::npos)
      << status.message();
  gate.open();
}

INSTANTIATE_TEST_SUITE_P(All, DeviceKinds, ::testing::ValuesIn(testedKinds()),
                         [](const auto &info) {
                           return abi::EnumNameDeviceKind(info.param);
                         });

TEST(Devices, CopyFromEachOther) {
  for (abi::DeviceKind from : kKinds)
    for (abi::DeviceKind to : kKinds) {
      Doubler source(from), target(to);
      std::vector<uint8_t> sent = bytesOf(10000, 6), got(10000);
      uint8_t *here = source.allocate(10000), *there = target.allocate(10000);
      ASSERT_TRUE(source.queue().copyIn(here, sent.data(), 10000).ok());
      ASSERT_TRUE(target.queue().wait(source.queue().record()).ok());
      ASSERT_TRUE(
          target.queue().copyFrom(*source.device, there, here, 10000).ok());
      ASSERT_TRUE(target.queue().copyOut(got.data(), there, 10000).ok());
      ASSERT_TRUE(target.queue().synchronize(target.queue().record()).ok());
      EXPECT_EQ(got, sent);
    }
}

TEST(Devices, OfDifferentKindsMakeOnePipeline) {
  const size_t count = kKinds.size();
  for (size_t kinds = 0; kinds < count * count * count; ++kinds)
    for (bool release : {false, true})
      for (bool profile : {false, true}) {
        PlanSpec plan = doublingPipeline(3, 5, 16, release);
        plan.devices[0].kind = kKinds[kinds % count];
        plan.devices[1].kind = kKinds[kinds / count % count];
        plan.devices[2].kind = kKinds[kinds / count / count];
        SessionOptions options;
        options.profile = profile;
        options.measure_arena = !profile && release;
        LoadedPlan loaded(plan, options);
        ASSERT_TRUE(loaded.session);
        for (int step = 0; step < 3; ++step) {
          std::fill(loaded.buffers[0].begin(), loaded.buffers[0].end(),
                    1.0f + step);
          ASSERT_TRUE(loaded.run(1));
          EXPECT_EQ(
              loaded.buffers[1],
              std::vector<float>(loaded.buffers[1].size(), 8.0f * (1 + step)));
        }
        size_t tasks = 0;
        for (const ProfileEvent &event : loaded.session->profile())
          tasks += event.instruction >= 0;
        EXPECT_EQ(tasks, profile ? 15u : 0u);
      }
}

} // namespace
} // namespace partita::test

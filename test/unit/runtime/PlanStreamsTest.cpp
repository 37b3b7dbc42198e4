//===- PlanStreamsTest.cpp - Samples of several sizes ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/PlanStreams.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace partita::test {
namespace {

using namespace partita::runtime;
using feed::PlanChoice;
using feed::PlanStreams;

constexpr int64_t kSizes[] = {16, 32, 64};

/// Pipelines that double `n` numbers on each device: a plan for each of kSizes.
class PlanStreamsTest : public ::testing::TestWithParam<int> {
protected:
  static std::vector<std::shared_ptr<const Artifact>> open(bool padded) {
    std::vector<std::vector<uint8_t>> plans;
    std::vector<uint8_t> weights;
    for (int64_t size : kSizes) {
      PipelineSpec spec;
      spec.devices = GetParam();
      spec.micro_batches = 2;
      spec.count = size;
      spec.release = true;
      PlanSpec plan = doublingPipeline(spec);
      for (PortSpec *port : {&plan.inputs[0], &plan.outputs[0]})
        port->batch_axis = -1;
      plan.dimensions = {{"n", size}};
      plan.mask = padded ? "x" : "";
      plans.push_back(encode(withLaunches(plan)));
      weights = plan.weight_bytes;
    }
    const std::string path = temporary("sizes.partita");
    writeFile(path, artifactOfPlans(plans, weights, testObjects()));
    auto all = Artifact::openAll(path);
    ::unlink(path.c_str());
    EXPECT_TRUE(all.ok()) << all.status().message();
    return all ? *all : std::vector<std::shared_ptr<const Artifact>>();
  }

  static std::unique_ptr<PlanStreams> load(bool padded = true) {
    SessionOptions session;
    session.pin = false;
    session.timeout_s = 20;
    session.places = testedPlaces();
    auto made = PlanStreams::create(open(padded), session, {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made ? std::move(*made) : nullptr;
  }

  /// Whether `count` numbers come back doubled on each device, and nothing
  /// behind them is written.
  static bool isRight(PlanStreams &streams, int64_t count, float first) {
    std::vector<float> x(count), y(count + 8, -1);
    for (int64_t i = 0; i < count; ++i)
      x[i] = first + float(i);
    const Tensor in =
        Tensor::refer(abi::DType::f32, {count},
                      reinterpret_cast<const uint8_t *>(x.data()), nullptr);
    auto ticket =
        streams.submit({count}, {in}, {reinterpret_cast<uint8_t *>(y.data())});
    if (!ticket || !streams.wait(*ticket).ok())
      return false;
    for (int64_t i = 0; i < count; ++i)
      if (y[i] != x[i] * float(1 << GetParam()))
        return false;
    for (size_t i = count; i < y.size(); ++i)
      if (y[i] != -1)
        return false;
    return true;
  }

  static std::string refusal(PlanStreams &streams, int64_t count) {
    std::vector<float> x(count), y(count);
    const Tensor in =
        Tensor::refer(abi::DType::f32, {count},
                      reinterpret_cast<const uint8_t *>(x.data()), nullptr);
    auto ticket =
        streams.submit({count}, {in}, {reinterpret_cast<uint8_t *>(y.data())});
    return ticket.status().message();
  }
};

TEST_P(PlanStreamsTest, EverySizeByTheSmallestPlan) {
  auto streams = load();
  ASSERT_TRUE(streams);
  for (int64_t count = 1; count <= 64; ++count)
    EXPECT_TRUE(isRight(*streams, count, 3)) << count;
  // 1 to 16, 17 to 32 and 33 to 64 numbers.
  EXPECT_EQ(streams->stream(0).counts().samples, 16);
  EXPECT_EQ(streams->stream(1).counts().samples, 16);
  EXPECT_EQ(streams->stream(2).counts().samples, 32);
}

TEST_P(PlanStreamsTest, ManyThreadsTakeTurns) {
  auto streams = load();
  ASSERT_TRUE(streams);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i)
        if (!isRight(*streams, 1 + (i * 7 + t * 13) % 64, float(t * 100 + i)))
          ++wrong;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(PlanStreamsTest, SaysWhatCannotBe) {
  auto streams = load();
  ASSERT_TRUE(streams);
  EXPECT_NE(
      refusal(*streams, 65).find("65 n (there are plans for 16, 32 and 64)"),
      std::string::npos);
  streams = load(/*padded=*/false);
  ASSERT_TRUE(streams);
  EXPECT_TRUE(isRight(*streams, 32, 1));
  EXPECT_NE(refusal(*streams, 31).find("--mask"), std::string::npos);
}

TEST_P(PlanStreamsTest, FindsPlansByTheirSizes) {
  const PlanChoice plans(open(true));
  EXPECT_EQ(plans.text(), "n = 16, 32 and 64");
  EXPECT_EQ(*plans.find({{"n", 32}}), 1u);
  EXPECT_EQ(*plans.find({}), 2u);
  EXPECT_NE(plans.find({{"n", 8}}).status().message().find("16, 32 and 64"),
            std::string::npos);
  EXPECT_FALSE(plans.find({{"m", 8}}).ok());
}

/// Jobs that note the order in which they run.
struct Noted final : runtime::DeviceThread::Job {
  std::vector<int> *order = nullptr;
  int number = 0;
  void run() override { order->push_back(number); }
};

TEST(DeviceThread, RunsJobsInTheOrderOfEachWhoPosts) {
  constexpr int kEach = 500;
  std::vector<int> order;
  std::vector<Noted> jobs(4 * kEach);
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].order = &order;
    jobs[i].number = static_cast<int>(i);
  }
  {
    const auto device = runtime::startDeviceThread();
    std::vector<std::thread> posting;
    for (int t = 0; t < 3; ++t)
      posting.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i)
          device->post(jobs[static_cast<size_t>(t * kEach + i)]);
        device->drain();
      });
    for (std::thread &thread : posting)
      thread.join();
    EXPECT_EQ(order.size(), 3u * kEach);
    for (int i = 3 * kEach; i < 4 * kEach; ++i)
      device->post(jobs[static_cast<size_t>(i)]);
  }
  ASSERT_EQ(order.size(), 4u * kEach) << "the end waits for what was posted";
  int last[4] = {-1, -1, -1, -1};
  for (int number : order) {
    EXPECT_GT(number, last[number / kEach]);
    last[number / kEach] = number;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PlanStreamsTest, ::testing::Values(1, 2, 4));

} // namespace
} // namespace partita::test

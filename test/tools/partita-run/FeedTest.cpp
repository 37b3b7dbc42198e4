//===- FeedTest.cpp - Samples in, the same samples out --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a plan that only hands its inputs on, so that every sample must come out
// where it went in, whatever the batch axis and the number of samples.
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Feed.h"
#include "tools/partita-run/measure/Benchmark.h"

#include "test/unit/runtime/PlanBuilder.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace partita;
using namespace partita::feed;
using namespace partita::run;
using namespace partita::test;
using partita::abi::ActionKind;
using partita::abi::DType;
using runtime::Expected;
using runtime::Tensor;

namespace {

/// Inputs a[4, 3] with batch axis 0, b[2, 4] with axis 1 and c[3] with none;
/// outputs the same, without c if `withC` is not set.
PlanSpec passOn(bool withC) {
  PlanSpec plan;
  plan.micro_batches = 2;
  plan.inputs = {{"a", DType::f32, {4, 3}, 0},
                 {"b", DType::f32, {2, 4}, 1},
                 {"c", DType::f32, {3}, -1}};
  plan.outputs = plan.inputs;
  if (!withC)
    plan.outputs.pop_back();
  plan.addDevice();
  for (int m = 0; m < plan.micro_batches; ++m)
    for (int io = 0; io < 3; ++io) {
      const int slot = plan.addSlot(0, plan.inputs[size_t(io)].shape);
      auto &actions = plan.programs[0].actions;
      actions.push_back({ActionKind::load_input, m, io, slot});
      if (io < int(plan.outputs.size()))
        actions.push_back({ActionKind::store_output, m, io, slot});
    }
  return plan;
}

class FeedTest : public ::testing::Test {
protected:
  void open(bool withC, bool full = false) {
    path = temporary("feed.partita");
    PlanSpec plan = passOn(withC);
    plan.full_micro_batches = full;
    writeArtifact(path, plan);
    auto artifact = runtime::Artifact::open(path);
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    model.emplace(*artifact);
    auto made = runtime::Session::create(*artifact, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    session = std::move(*made);
  }
  void TearDown() override { std::remove(path.c_str()); }

  /// Numbers that are all different.
  static Tensor numbers(std::vector<int64_t> shape, float first) {
    Tensor tensor = *Tensor::allocate(DType::f32, std::move(shape));
    auto *data = reinterpret_cast<float *>(tensor.mutableData());
    for (int64_t i = 0; i < tensor.elements(); ++i)
      data[i] = first + float(i);
    return tensor;
  }

  InputTensors samples(int64_t count) const {
    return {numbers({count, 3}, 0), numbers({2, count}, 1000),
            numbers({3}, 2000)};
  }

  std::string path;
  std::optional<Model> model;
  std::unique_ptr<runtime::Session> session;
};

void expectSame(const Tensor &actual, const Tensor &expected) {
  EXPECT_EQ(actual.typeText(), expected.typeText());
  EXPECT_EQ(
      std::memcmp(actual.data(), expected.data(), size_t(expected.bytes())), 0);
}

std::string errorOf(const Expected<Feed> &feed) {
  return feed.ok() ? "" : feed.status().message();
}

TEST_F(FeedTest, everySampleComesBack) {
  open(/*withC=*/false);
  for (int64_t count = 1; count <= 19; ++count) {
    InputTensors inputs = samples(count);
    Expected<Feed> feed = Feed::create(*model, inputs, {});
    ASSERT_TRUE(feed.ok()) << feed.status().message();
    EXPECT_EQ(feed->samples(), count);
    EXPECT_EQ(feed->microBatches(), (count + 3) / 4);
    EXPECT_EQ(feed->steps(), (count + 7) / 8);
    Expected<Collector> collector = Collector::create(*model, *feed, {});
    ASSERT_TRUE(collector.ok()) << collector.status().message();
    runtime::StepBinding binding;
    for (int64_t step = 0; step < feed->steps(); ++step) {
      feed->fill(step, binding);
      collector->bind(step, binding.micro_batches, binding);
      runtime::Status status = session->run(binding);
      ASSERT_TRUE(status.ok()) << status.message();
      collector->take(step, binding.micro_batches);
    }
    expectSame(collector->results()[0], *inputs[0]);
    expectSame(collector->results()[1], *inputs[1]);
  }
}

// Only what does not lie as a step wants it is copied.
TEST_F(FeedTest, wholeMicroBatchesStayWhereTheyAre) {
  open(/*withC=*/false);
  InputTensors inputs = samples(11);
  Expected<Feed> feed = Feed::create(*model, inputs, {});
  ASSERT_TRUE(feed.ok());
  Expected<Collector> collector = Collector::create(*model, *feed, {});
  ASSERT_TRUE(collector.ok());
  runtime::StepBinding binding;
  feed->fill(0, binding);
  collector->bind(0, binding.micro_batches, binding);
  EXPECT_EQ(binding.inputs[0], inputs[0]->data());
  EXPECT_EQ(binding.outputs[0], collector->results()[0].data());
  EXPECT_NE(binding.inputs[1], inputs[1]->data());
  EXPECT_NE(binding.outputs[1], collector->results()[1].data());
  feed->fill(1, binding); // three samples of four
  collector->bind(1, binding.micro_batches, binding);
  EXPECT_NE(binding.inputs[0], inputs[0]->data() + 8 * 3 * sizeof(float));
}

TEST_F(FeedTest, lastSampleFillsUp) {
  open(/*withC=*/false);
  Expected<Feed> feed = Feed::create(*model, samples(5), {});
  ASSERT_TRUE(feed.ok());
  EXPECT_TRUE(feed->partial());
  runtime::StepBinding binding;
  feed->fill(0, binding);
  ASSERT_EQ(binding.micro_batches, 2);
  // Micro-batch 1 of a: sample 4 four times.
  const auto *a = reinterpret_cast<const float *>(binding.inputs[0]) + 12;
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(a[i], float(12 + i % 3));
  // And of b, whose samples lie along the second axis.
  const auto *b = reinterpret_cast<const float *>(binding.inputs[1]) + 8;
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(b[i], float(i < 4 ? 1004 : 1009));
  // An input without samples is the same for every micro-batch.
  const auto *c = reinterpret_cast<const float *>(binding.inputs[2]);
  EXPECT_EQ(c[0], 2000);
  EXPECT_EQ(c[3], 2000);
}

TEST_F(FeedTest, combinedSamplesAreNotFilledUp) {
  open(/*withC=*/false, /*full=*/true);
  EXPECT_EQ(errorOf(Feed::create(*model, samples(6), {})),
            "the model combines the samples of a micro-batch with each other, "
            "so a micro-batch cannot be filled up: give a multiple of 4 "
            "samples, not 6");
  EXPECT_TRUE(Feed::create(*model, samples(12), {}).ok());
}

TEST_F(FeedTest, wholeStepRepeatsWhatThereIs) {
  open(/*withC=*/false);
  Expected<Feed> feed = Feed::create(*model, samples(4), {});
  ASSERT_TRUE(feed.ok());
  runtime::StepBinding binding;
  feed->fillWhole(binding);
  EXPECT_EQ(binding.micro_batches, 2);
  EXPECT_EQ(std::memcmp(binding.inputs[0], binding.inputs[0] + 48, 48), 0);
}

TEST_F(FeedTest, outputsWithoutBatchAxisCannotBeJoined) {
  open(/*withC=*/true);
  for (auto [count, right] : {std::pair{4, true}, {3, false}, {8, false}}) {
    Expected<Feed> feed = Feed::create(*model, samples(count), {});
    ASSERT_TRUE(feed.ok());
    Expected<Collector> collector = Collector::create(*model, *feed, {});
    EXPECT_EQ(collector.ok(), right);
    if (!right) {
      EXPECT_NE(collector.status().message().find("give exactly 4 samples"),
                std::string::npos);
    }
  }
}

TEST_F(FeedTest, refusesWhatDoesNotFit) {
  open(/*withC=*/false);
  InputTensors inputs = samples(4);
  inputs[1] = numbers({2, 5}, 0);
  EXPECT_NE(errorOf(Feed::create(*model, inputs, {}))
                .find("do not have the same number of samples: 4 and 5"),
            std::string::npos);
  inputs = samples(4);
  inputs[0] = numbers({0, 3}, 0);
  EXPECT_NE(errorOf(Feed::create(*model, inputs, {})).find("has no samples"),
            std::string::npos);
  inputs = samples(4);
  inputs[2] = numbers({4}, 0);
  EXPECT_NE(errorOf(Feed::create(*model, inputs, {}))
                .find("float32 [4], but float32 [3] is needed"),
            std::string::npos);
  inputs = samples(4);
  inputs[0] = numbers({4, 3, 1}, 0);
  EXPECT_NE(errorOf(Feed::create(*model, inputs, {}))
                .find("float32 [4, 3, 1], but float32 [N, 3] is needed"),
            std::string::npos);
}

TEST_F(FeedTest, madeUpInputsFollowTheGivenOnes) {
  open(/*withC=*/false);
  InputTensors inputs(3);
  ASSERT_TRUE(makeUpMissing(*model, 2, inputs).ok());
  EXPECT_EQ(inputs[0]->typeText(), "float32 [8, 3]");
  EXPECT_EQ(inputs[1]->typeText(), "float32 [2, 8]");
  EXPECT_EQ(inputs[2]->typeText(), "float32 [3]");
  InputTensors again(3);
  again[0] = numbers({10, 3}, 0);
  ASSERT_TRUE(makeUpMissing(*model, 2, again).ok());
  EXPECT_EQ(again[1]->typeText(), "float32 [2, 10]");
}

TEST(Percentile, betweenNeighbours) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({7}, 0.9), 7);
  EXPECT_EQ(percentile({1, 2}, 0.5), 1.5);
  EXPECT_EQ(percentile({0, 10, 20, 30, 40}, 0.1), 4);
}

} // namespace

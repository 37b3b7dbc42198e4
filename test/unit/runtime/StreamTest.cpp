//===- StreamTest.cpp - Samples of many threads in common steps -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Stream.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace partita::test {
namespace {

using namespace partita::runtime;
using feed::Stream;

/// Pipelines of 3 micro-batches of 4 samples: y = 2^devices * x.
class StreamTest : public ::testing::TestWithParam<int> {
protected:
  static constexpr int kBatches = 3;
  static constexpr int64_t kSamples = 4;

  void open(const PlanSpec &plan) {
    std::string path = temporary("stream.partita");
    writeArtifact(path, plan, testObjects());
    auto artifact = Artifact::open(path);
    ::unlink(path.c_str());
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    model = std::make_unique<feed::Model>(*artifact);
  }

  Expected<std::unique_ptr<Stream>>
  makeStream(const feed::StreamOptions &options = {}) {
    SessionOptions session;
    session.pin = false;
    session.timeout_s = 20;
    session.places = testedPlaces();
    return Stream::create(*model, session, options);
  }

  std::unique_ptr<Stream> openStream(const feed::StreamOptions &options = {}) {
    PipelineSpec spec;
    spec.devices = GetParam();
    spec.micro_batches = kBatches;
    spec.count = kSamples;
    spec.release = true;
    open(doublingPipeline(spec));
    auto made = makeStream(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made ? std::move(*made) : nullptr;
  }

  static Tensor samples(int64_t count, float first) {
    Tensor tensor = *Tensor::allocate(abi::DType::f32, {count});
    auto *values = reinterpret_cast<float *>(tensor.mutableData());
    for (int64_t i = 0; i < count; ++i)
      values[i] = first + float(i);
    return tensor;
  }

  bool isRight(const Tensor &x, const Stream::Answer &answer) const {
    const Tensor &y = answer.outputs[0];
    if (y.shape() != x.shape())
      return false;
    const auto *in = reinterpret_cast<const float *>(x.data());
    const auto *out = reinterpret_cast<const float *>(y.data());
    for (int64_t i = 0; i < x.elements(); ++i)
      if (out[i] != in[i] * float(1 << GetParam()))
        return false;
    return true;
  }

  std::unique_ptr<feed::Model> model;
};

TEST_P(StreamTest, ManyThreadsAndSizes) {
  for (double delay : {0.0, 0.001}) {
    auto stream = openStream({.delay_s = delay});
    ASSERT_TRUE(stream);
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 60; ++i) {
          // Also more than a step has.
          Tensor x = samples(1 + (i * 7 + t) % 30, float(1000 * t + 10 * i));
          auto ticket = stream->submit({x});
          if (!ticket)
            return;
          auto answer = stream->wait(*ticket);
          right += answer.ok() && isRight(x, *answer);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(right, 6 * 60);
  }
}

TEST_P(StreamTest, TogetherInOneStep) {
  // The first waits for others; the step begins when it is full.
  auto stream = openStream({.delay_s = 10});
  ASSERT_TRUE(stream);
  std::vector<Tensor> given;
  std::vector<uint64_t> tickets;
  for (int i = 0; i < kBatches * kSamples; ++i) {
    given.push_back(samples(1, float(i)));
    tickets.push_back(*stream->submit({given.back()}));
  }
  for (size_t i = tickets.size(); i-- > 0;) {
    auto answer = stream->wait(tickets[i]);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_TRUE(isRight(given[i], *answer));
  }
  EXPECT_EQ(stream->counts().steps, 1);
  EXPECT_EQ(stream->counts().samples, kBatches * kSamples);
}

TEST_P(StreamTest, WholeStepsOfOneAreNotCopied) {
  auto stream = openStream();
  ASSERT_TRUE(stream);
  const int64_t step = stream->stepSamples();
  ASSERT_EQ(step, kBatches * kSamples);
  // Two whole steps, one of whole micro-batches, and one that is filled up.
  Tensor x = samples(2 * step + kSamples, 1);
  auto answer = stream->wait(*stream->submit({x}));
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(isRight(x, *answer));
  EXPECT_EQ(stream->counts().direct, 3);
  Tensor y = samples(kSamples + 1, 5);
  answer = stream->wait(*stream->submit({y}));
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(isRight(y, *answer));
  EXPECT_EQ(stream->counts().direct, 3);
  EXPECT_EQ(stream->counts().steps, 4);
}

TEST_P(StreamTest, APartialStepBeginsAfterTheDelay) {
  auto stream = openStream({.delay_s = 0.05});
  ASSERT_TRUE(stream);
  Tensor x = samples(5, 1);
  auto begin = Stream::Clock::now();
  auto answer = stream->wait(*stream->submit({x}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_TRUE(isRight(x, *answer));
  EXPECT_GE(answer->finished - begin, std::chrono::milliseconds(49));
}

TEST_P(StreamTest, WhatIsUnderWayIsFinished) {
  auto stream = openStream({.delay_s = 30});
  ASSERT_TRUE(stream);
  std::vector<Tensor> given;
  for (int i = 0; i < 5; ++i) {
    given.push_back(samples(3, float(i)));
    ASSERT_TRUE(stream->submit({given.back()}).ok());
  }
  stream.reset(); // long before the delay has passed
}

TEST_P(StreamTest, PushesBack) {
  auto stream = openStream({.delay_s = 0.2, .queued_samples = 3});
  ASSERT_TRUE(stream);
  Tensor x = samples(2, 1);
  auto begin = Stream::Clock::now();
  auto first = stream->submit({x}), second = stream->submit({x});
  // There is room for the second when the first has left the queue.
  EXPECT_GE(Stream::Clock::now() - begin, std::chrono::milliseconds(190));
  EXPECT_TRUE(stream->wait(*first).ok());
  EXPECT_TRUE(stream->wait(*second).ok());
}

TEST_P(StreamTest, SaysWhatIsWrong) {
  auto stream = openStream();
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->submit({}).status().message(),
            "the model has 1 input, and 0 are given");
  Tensor wrong = *Tensor::allocate(abi::DType::f64, {2});
  EXPECT_NE(stream->submit({wrong}).status().message().find("float32"),
            std::string::npos);
  EXPECT_EQ(stream->wait(7).status().message(),
            "no samples of ticket 7 are under way");
  // The stream lives on.
  Tensor x = samples(1, 3);
  EXPECT_TRUE(stream->wait(*stream->submit({x})).ok());
}

TEST_P(StreamTest, RefusesModelsThatKeepNoSamplesApart) {
  PipelineSpec spec;
  spec.devices = GetParam();
  PlanSpec plan = doublingPipeline(spec);
  plan.outputs[0].batch_axis = -1;
  open(plan);
  EXPECT_NE(makeStream().status().message().find("no axis for samples"),
            std::string::npos);
}

TEST_P(StreamTest, SaysWhichModelsSuit) {
  PipelineSpec spec;
  spec.devices = GetParam();
  PlanSpec plan = doublingPipeline(spec);
  open(plan);
  EXPECT_TRUE(Stream::suits(*model));
  plan.outputs[0].batch_axis = -1;
  open(plan);
  EXPECT_FALSE(Stream::suits(*model));
}

TEST_P(StreamTest, FillsUpNoMicroBatchWhoseSamplesAreCombined) {
  PipelineSpec spec;
  spec.devices = GetParam();
  spec.micro_batches = kBatches;
  spec.count = kSamples;
  PlanSpec plan = doublingPipeline(spec);
  plan.full_micro_batches = true;
  open(plan);
  auto stream = makeStream();
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  Tensor part = samples(kSamples + 1, 0), whole = samples(2 * kSamples, 0);
  EXPECT_NE((*stream)->submit({part}).status().message().find(
                "give a multiple of 4 samples, not 5"),
            std::string::npos);
  auto answer = (*stream)->wait(*(*stream)->submit({whole}));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_TRUE(isRight(whole, *answer));
}

TEST_P(StreamTest, SaysWhatCombinesSamples) {
  PipelineSpec spec;
  spec.devices = GetParam();
  PlanSpec plan = doublingPipeline(spec);
  plan.inputs[0].batch_axis = plan.outputs[0].batch_axis = -1;
  plan.micro_batches = 1;
  plan.mixes = "'pool' combines them";
  open(plan);
  auto stream = makeStream();
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  const int64_t entries = model->inputs[0].shape[0];
  EXPECT_NE((*stream)->submit({samples(2 * entries, 0)}).status().message().find(
                "samples cannot be split: 'pool' combines them"),
            std::string::npos);
  feed::StreamOptions late;
  late.delay_s = 0.01;
  EXPECT_NE(makeStream(late).status().message().find("'pool' combines them"),
            std::string::npos);
}

TEST_P(StreamTest, WithoutAnAxisAMicroBatchIsASample) {
  PipelineSpec spec;
  spec.devices = GetParam();
  spec.micro_batches = 2;
  PlanSpec plan = doublingPipeline(spec);
  plan.inputs[0].batch_axis = plan.outputs[0].batch_axis = -1;
  open(plan);
  auto stream = makeStream();
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  std::vector<Tensor> given;
  std::vector<uint64_t> tickets;
  for (int i = 0; i < 5; ++i) {
    given.push_back(samples(spec.count, float(i)));
    tickets.push_back(*(*stream)->submit({given.back()}));
  }
  for (size_t i = 0; i < tickets.size(); ++i) {
    auto answer = (*stream)->wait(tickets[i]);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_TRUE(isRight(given[i], *answer));
  }
  EXPECT_EQ((*stream)->counts().samples, 5);
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamTest, ::testing::Values(1, 2, 4));

} // namespace
} // namespace partita::test

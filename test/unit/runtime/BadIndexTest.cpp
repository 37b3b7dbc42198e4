//===- BadIndexTest.cpp - Indices that a model does not allow -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plans of these tests examine their input itself. So a test gives for each
// sample what a check would have found, and gets it back as the output.
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Stream.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <cstring>
#include <gtest/gtest.h>

namespace partita::test {
namespace {

using namespace partita::runtime;
using feed::Stream;

constexpr int kBatches = 3;
constexpr int64_t kSamples = 2, kLength = 5;

/// Each of kSamples samples has kLength indices from -10 to 9, in a row of its
/// own, or all in one row.
PlanSpec examiningPlan(bool ownRows) {
  PlanSpec plan;
  plan.micro_batches = kBatches;
  const int program = plan.addDevice();
  const Shape shape = ownRows ? Shape{kSamples, 2} : Shape{1, 2};
  const int slot = plan.addSlot(program, shape);
  SlotSpec &described = plan.programs[0].slots[size_t(slot)];
  described.dtype = abi::DType::i64;
  described.bytes = product(shape) * 8;
  plan.programs[0].arena_bytes = 64;
  plan.inputs.push_back({"found", abi::DType::i64, shape, ownRows ? 0 : -1});
  plan.outputs.push_back({"same", abi::DType::i64, shape, ownRows ? 0 : -1});
  plan.checks.push_back({"Gather",
                         "embed",
                         "indices",
                         "ids",
                         {kSamples, kLength},
                         {-10},
                         {9},
                         ownRows ? kSamples : 1});
  for (int m = 0; m < kBatches; ++m)
    for (abi::ActionKind kind :
         {abi::ActionKind::load_input, abi::ActionKind::examine,
          abi::ActionKind::store_output})
      plan.programs[0].actions.push_back({kind, m, 0, slot});
  return plan;
}

class BadIndices : public ::testing::Test {
protected:
  void open(bool ownRows) {
    const std::string path = temporary("indices.partita");
    writeArtifact(path, examiningPlan(ownRows), testObjects());
    auto artifact = Artifact::open(path);
    ::unlink(path.c_str());
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    model = std::make_unique<feed::Model>(*artifact);
    options.pin = false;
    options.timeout_s = 20;
    options.places = testedPlaces();
  }

  std::unique_ptr<Stream> openStream() {
    auto made = Stream::create(*model, options, {.delay_s = 10});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made ? std::move(*made) : nullptr;
  }

  /// (place, index) of each sample. A place of kLength says that all are right.
  static Tensor found(const std::vector<std::pair<int64_t, int64_t>> &samples) {
    Tensor tensor =
        *Tensor::allocate(abi::DType::i64, {int64_t(samples.size()), 2});
    auto *values = reinterpret_cast<int64_t *>(tensor.mutableData());
    for (auto [place, index] : samples) {
      *values++ = place;
      *values++ = index;
    }
    return tensor;
  }
  static constexpr std::pair<int64_t, int64_t> kRight = {kLength, 0};

  std::unique_ptr<feed::Model> model;
  SessionOptions options;
};

TEST_F(BadIndices, FailTheStepAndNotTheSession) {
  open(/*ownRows=*/true);
  auto session = Session::create(model->artifact, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Tensor bad =
      found({kRight, kRight, kRight, {3, -11}, {0, 1000}, kRight});
  const Tensor good = found({kRight, kRight, kRight, kRight, kRight, kRight});
  std::vector<uint8_t> outputs(size_t(bad.bytes()));
  StepBinding binding{kBatches, {bad.data()}, {outputs.data()}};
  for (int time = 0; time < 2; ++time) {
    binding.inputs = {bad.data()};
    const Status status = (*session)->run(binding);
    EXPECT_EQ(status.message(),
              "Gather 'embed': -11 at [3, 3] of its indices 'ids' is out of "
              "range: -10 to 9 are allowed (sample 3, micro-batch 1)");
    const std::vector<BadIndex> expected = {{1, 0, 1, 3, -11},
                                            {2, 0, 0, 0, 1000}};
    EXPECT_EQ((*session)->badIndices(), expected);
    binding.inputs = {good.data()};
    const Status next = (*session)->run(binding);
    EXPECT_TRUE(next.ok()) << next.message();
    EXPECT_TRUE((*session)->badIndices().empty());
  }
}

TEST_F(BadIndices, OfMicroBatchesThatAreNotFedAreNotLookedAt) {
  open(/*ownRows=*/true);
  auto session = Session::create(model->artifact, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const Tensor first = found({kRight, kRight, kRight, kRight, {1, 10}, kRight});
  std::vector<uint8_t> outputs(size_t(first.bytes()));
  StepBinding binding{kBatches, {first.data()}, {outputs.data()}};
  EXPECT_FALSE((*session)->run(binding).ok());
  binding.micro_batches = kBatches - 1; // the third has a bad one, of before
  const Status status = (*session)->run(binding);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(BadIndices, ConcernOnlyThoseWhoGaveThem) {
  open(/*ownRows=*/true);
  auto stream = openStream();
  ASSERT_TRUE(stream);
  // Together they fill a step.
  const std::vector<Tensor> given = {found({kRight}),
                                     found({kRight, kRight, {4, 77}}),
                                     found({kRight, kRight})};
  std::vector<uint64_t> tickets;
  for (const Tensor &samples : given)
    tickets.push_back(*stream->submit({samples}));
  for (size_t i : {0u, 2u}) {
    auto answer = stream->wait(tickets[i]);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(std::memcmp(answer->outputs[0].data(), given[i].data(),
                          size_t(given[i].bytes())),
              0);
  }
  EXPECT_EQ(stream->counts().steps, 1);
  // The sample is counted as its owner counts it.
  EXPECT_EQ(stream->wait(tickets[1]).status().message(),
            "Gather 'embed': 77 at [2, 4] of its indices 'ids' is out of "
            "range: -10 to 9 are allowed (sample 2, micro-batch 1)");
}

TEST_F(BadIndices, OfUnknownSamplesNameTheirPlaceInTheMicroBatch) {
  open(/*ownRows=*/false);
  auto session = Session::create(model->artifact, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  Tensor bad = found({{2 * kLength, 0}, {7, 10}, {2 * kLength, 0}});
  std::vector<uint8_t> outputs(size_t(bad.bytes()));
  const StepBinding binding{kBatches, {bad.data()}, {outputs.data()}};
  EXPECT_EQ((*session)->run(binding).message(),
            "Gather 'embed': 10 at [1, 2] of its indices 'ids' is out of "
            "range: -10 to 9 are allowed (micro-batch 1)");
}

TEST_F(BadIndices, ChecksThatDoNotFitAreRefused) {
  auto refusal = [](auto change) {
    PlanSpec plan = examiningPlan(true);
    change(plan);
    const std::string path = temporary("wrong.partita");
    writeArtifact(path, plan, testObjects());
    auto artifact = Artifact::open(path);
    ::unlink(path.c_str());
    return artifact ? "it is accepted" : artifact.status().message();
  };
  auto says = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << text;
  };
  EXPECT_TRUE(says(refusal([](PlanSpec &plan) { plan.checks[0].rows = 3; }),
                   "check 0 has 3 rows of 10 indices"));
  EXPECT_TRUE(says(refusal([](PlanSpec &plan) { plan.checks[0].rows = 1; }),
                   "in a slot of another type or size"));
  EXPECT_TRUE(says(refusal([](PlanSpec &plan) { plan.checks[0].low = {}; }),
                   "check 0 has bounds that do not fit its indices"));
  EXPECT_TRUE(says(refusal([](PlanSpec &plan) { plan.checks.clear(); }),
                   "names check 0 of 0"));
  EXPECT_TRUE(says(refusal([](PlanSpec &plan) {
                     plan.checks[0].shape = {kSamples, -kLength};
                   }),
                   "check 0 has an impossible shape"));
}

} // namespace
} // namespace partita::test

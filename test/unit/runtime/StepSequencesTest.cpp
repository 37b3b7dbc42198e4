//===- StepSequencesTest.cpp - Steps of several sequences -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/PlanStreams.h"
#include "runtime/feed/SharedSteps.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <chrono>
#include <functional>
#include <gtest/gtest.h>

namespace partita::test {
namespace {

using namespace partita::runtime;
using feed::PlanChoice;
using feed::PlanStreams;
using feed::SharedSteps;

constexpr int64_t kNumbers = 16; ///< of a sequence in a step
constexpr int kSequences = 4;

/// Doubles the numbers of so many sequences.
PlanSpec planOf(int sequences) {
  PlanSpec plan = doublingPipeline(1, 1, kNumbers * sequences);
  plan.inputs[0].shape = plan.outputs[0].shape = {sequences, kNumbers};
  plan.full_micro_batches = plan.full_steps = true;
  plan.dimensions = {{"batch", sequences}};
  plan.sequences = kSequences / sequences;
  plan.step_sequences = sequences;
  StateSpec state{"s", abi::StateRole::carried, abi::DType::f32};
  state.shape = {sequences, kNumbers};
  state.bytes = sequences * kNumbers * 4;
  plan.states = {state};
  if (sequences > 1)
    plan.inputs.push_back({"/live", abi::DType::boolean, {sequences}, -1});
  return plan;
}

using Artifacts = std::vector<std::shared_ptr<const Artifact>>;

Expected<Artifacts> open(const std::vector<PlanSpec> &plans) {
  std::vector<std::vector<uint8_t>> encoded;
  for (const PlanSpec &plan : plans)
    encoded.push_back(encode(withLaunches(plan)));
  const std::string path = temporary("sequences.partita");
  writeFile(path, artifactOfPlans(encoded, {}, testObjects()));
  auto all = Artifact::openAll(path);
  ::unlink(path.c_str());
  return all;
}

TEST(StepSequences, WrongPlansAreRefused) {
  const struct {
    std::string message;
    std::function<void(PlanSpec &)> change;
  } wrong[] = {
      {"says that a step is of 0 sequences",
       [](PlanSpec &p) { p.step_sequences = 0; }},
      {"says that a step is of 65 sequences",
       [](PlanSpec &p) { p.step_sequences = 65; }},
      {"says that a step is of 2 sequences",
       [](PlanSpec &p) { p.full_steps = false, p.sequences = 1; }},
      {"has no input that says", [](PlanSpec &p) { p.inputs.pop_back(); }},
      {"has no input that says",
       [](PlanSpec &p) { p.inputs.back().dtype = abi::DType::u8; }},
      {"has no input that says", [](PlanSpec &p) { p.inputs[1].shape = {3}; }},
      {"has no input that says",
       [](PlanSpec &p) { p.inputs[1].batch_axis = 0; }},
      {"state 's' is not of 2 sequences",
       [](PlanSpec &p) { p.states[0].shape = {1, 32}; }},
      {"state 's' is not of 2 sequences",
       [](PlanSpec &p) {
         p.states[0].shape = {2, 8};
         p.states[0].bytes = 64;
       }},
      {"has another state s", [](PlanSpec &p) { p.sequences = 4; }},
      {"has another state s",
       [](PlanSpec &p) {
         p.states[0].shape = {2, 32};
         p.states[0].bytes = 256;
       }},
      {"says that a step is of 2 sequences",
       [](PlanSpec &p) { p.entry = "eval"; }},
      {"has another state s",
       [](PlanSpec &p) { p.states[0].role = abi::StateRole::parameter; }},
      {"none for one of them",
       [](PlanSpec &p) {
         p.sequences = 1;
         p.states.clear();
       }},
      {"is not of 2 sequences",
       [](PlanSpec &p) {
         CheckSpec check{"Gather", "g", "indices", "x"};
         check.shape = {3};
         check.low = {0};
         check.high = {7};
         check.rows = 3;
         p.checks = {check};
       }},
      {"has other inputs or outputs",
       [](PlanSpec &p) { p.inputs[0].name = "z"; }},
      {"none for one of them", [](PlanSpec &p) { p.inputs[0].shape = {4, 8}; }},
  };
  for (const auto &each : wrong) {
    PlanSpec plan = planOf(2);
    each.change(plan);
    const Status status = open({planOf(1), plan}).status();
    EXPECT_NE(status.message().find(each.message), std::string::npos)
        << each.message << ": " << status.message();
  }
  // Its steps are of two micro-batches.
  PlanSpec one = planOf(1);
  one.micro_batches = 2;
  one.states.clear();
  EXPECT_FALSE(open({one, planOf(2)}).ok());
  one = planOf(1);
  one.entry = "train";
  EXPECT_FALSE(open({one, planOf(2)}).ok());
  EXPECT_NE(open({planOf(2)}).status().message().find("none for one of them"),
            std::string::npos);
}

TEST(StepSequences, AreNoChoiceOfTheUser) {
  auto artifacts = open({planOf(1), planOf(2), planOf(4)});
  ASSERT_TRUE(artifacts.ok()) << artifacts.status().message();
  const PlanChoice plans(*artifacts);
  EXPECT_EQ(plans.planCount(), 1u);
  EXPECT_TRUE(plans.dimensions().empty());
  ASSERT_EQ(plans.ofSeveral(0).size(), 2u);
  EXPECT_EQ(plans.ofSeveral(0)[1]->plan->step_sequences(), 4);
  EXPECT_EQ(plans.ofSeveral(0)[1]->inputs.size(), 1u);
  EXPECT_EQ(*plans.find({{"batch", 1}}), 0u);
  EXPECT_NE(plans.find({{"batch", 4}}).status().message().find("as they come"),
            std::string::npos);
}

using Positions = std::vector<size_t>;
using std::chrono::milliseconds;

TEST(StepSequences, FirstOfEachOfTheGroupOfTheFirst) {
  const SharedSteps steps({{1, 10}, {4, 15}}, 8);
  EXPECT_EQ(steps.find({6, 1, 4, 6, 5}, 1), (Positions{0, 2, 4}));
  EXPECT_EQ(steps.find({1, 6, 1}, 1), (Positions{0}));
  EXPECT_EQ(steps.find({1, 6, 1}, 0), (Positions{0}));
  EXPECT_EQ(steps.place(6, 1), 2);
  EXPECT_FALSE(steps.isFull({0, 1, 2, 2}));
  EXPECT_TRUE(steps.isFull({0, 1, 5, 2, 3}));
}

TEST(StepSequences, ThePlanThatTakesLeast) {
  SharedSteps steps({{1, 10}, {2, 15}, {4, 25}}, 8);
  EXPECT_EQ(steps.choose({0}), 0u);
  EXPECT_EQ(steps.choose({0, 5}), 0u); // of two groups
  EXPECT_EQ(steps.choose({0, 1}), 1u); // full
  EXPECT_EQ(steps.choose({0, 2}), 0u); // 12.5 each, in a step of four
  EXPECT_EQ(steps.choose({0, 2, 3}), 2u);
  EXPECT_EQ(steps.choose({0, 1, 2, 3}), 2u);
  // As measured: others are as much faster or slower as the first.
  steps.tookTime(0, milliseconds(10));
  EXPECT_EQ(steps.choose({0, 2}), 0u);
  steps.tookTime(2, milliseconds(18));
  EXPECT_EQ(steps.choose({0, 2}), 2u);
  steps.tookTime(2, milliseconds(40)); // the shortest counts
  EXPECT_EQ(steps.choose({0, 2}), 2u);
}

TEST(StepSequences, WaitsForThoseWhoComeBackFast) {
  SharedSteps steps({{1, 10}, {4, 15}}, 8);
  const SharedSteps::Clock::time_point now{};
  auto after = [&](int ms) { return now + milliseconds(ms); };
  steps.tookTime(1, milliseconds(20)); // half of it is waited for
  steps.hasCome(1, after(0));
  steps.wasAnswered(1, after(0));
  EXPECT_EQ(steps.latestBegin(0, after(1)), after(1)); // not known yet
  steps.hasCome(1, after(3));
  steps.wasAnswered(1, after(20));
  EXPECT_EQ(steps.latestBegin(0, after(21)), after(30));
  EXPECT_EQ(steps.latestBegin(0, after(50)), after(50));
  EXPECT_EQ(steps.latestBegin(5, after(21)), after(21)); // another group
  steps.hasCome(1, after(45));                           // late
  steps.wasAnswered(1, after(60));
  EXPECT_EQ(steps.latestBegin(0, after(61)), after(61));
  steps.hasCome(1, after(62));
  steps.hasCome(1, after(63));
  steps.wasAnswered(1, after(80)); // it waits already
  EXPECT_EQ(steps.latestBegin(0, after(81)), after(81));
  // Alone, nobody waits.
  SharedSteps alone({{1, 10}}, 8);
  alone.tookTime(0, milliseconds(20));
  for (int ms : {0, 1}) {
    alone.hasCome(0, after(ms));
    alone.wasAnswered(0, after(ms));
  }
  EXPECT_EQ(alone.latestBegin(0, after(2)), after(2));
}

/// Those that wait share a step, wherever they are in their group; each gets
/// its own results. A request may be of several steps.
TEST(StepSequences, ShareSteps) {
  auto artifacts = open({planOf(1), planOf(2), planOf(4)});
  ASSERT_TRUE(artifacts.ok()) << artifacts.status().message();
  SessionOptions session;
  session.pin = false;
  session.timeout_s = 20;
  session.places = testedPlaces();
  feed::StreamOptions options;
  options.delay_s = 10;
  auto streams = PlanStreams::create(*artifacts, session, options);
  ASSERT_TRUE(streams.ok()) << streams.status().message();
  constexpr int kSteps = 3;
  std::vector<std::vector<float>> x, y;
  std::vector<uint64_t> tickets;
  for (int i : {2, 0, 3, 1}) {
    x.emplace_back();
    for (int k = 0; k < kSteps * kNumbers; ++k)
      x.back().push_back(float(100 * i + k));
    y.emplace_back(x.back().size());
    const Tensor in = Tensor::refer(
        abi::DType::f32, {kSteps, kNumbers},
        reinterpret_cast<const uint8_t *>(x.back().data()), nullptr);
    auto ticket =
        (*streams)->submit(std::vector<int64_t>(), {in},
                           {reinterpret_cast<uint8_t *>(y.back().data())}, i);
    ASSERT_TRUE(ticket.ok()) << ticket.status().message();
    tickets.push_back(*ticket);
  }
  for (uint64_t ticket : tickets) {
    const Status status = (*streams)->wait(ticket);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = 0; k < x[i].size(); ++k)
      EXPECT_EQ(y[i][k], 2 * x[i][k]) << i << " " << k;
  const feed::Stream::Counts counts = (*streams)->stream(0).counts();
  EXPECT_EQ(counts.samples, kSteps * kSequences);
  EXPECT_EQ(counts.steps, kSteps);
}

} // namespace
} // namespace partita::test

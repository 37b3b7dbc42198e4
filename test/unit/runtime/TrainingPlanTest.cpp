//===- TrainingPlanTest.cpp - Plans that learn, right and wrong -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"
#include "runtime/session/Session.h"
#include "test/unit/runtime/TestedDevices.h"
#include "test/unit/runtime/Trainings.h"

#include <functional>
#include <gtest/gtest.h>

namespace partita::test {
namespace {

using namespace runtime;

class TrainingPlanTest : public testing::Test {
protected:
  void TearDown() override { ::unlink(path.c_str()); }

  /// The message of opening the plans; empty if they are right.
  std::string open(const PlanSpec &train, const PlanSpec &eval) {
    writeFile(path, trainingBytes(train, eval));
    auto opened = Artifact::openTraining(path);
    return opened ? "" : opened.status().message();
  }
  void expectError(const PlanSpec &train, const std::string &part,
                   const PlanSpec &eval = evalPlan()) {
    const std::string message = open(train, eval);
    EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  }

  const std::string path = temporary("training.partita");
};

/// A plan that the devices that are tested compute. cuBLASLt adds what it is
/// given, and no sum of its own.
TrainPlan testedPlan() {
  TrainPlan plan = trainPlan();
  PostOpSpec &sum =
      plan.program().units[TrainPlan::kAdd].instructions[0].post_ops[0];
  if (testedKind() == abi::DeviceKind::cuda) {
    sum.kind = abi::PostOpKind::add;
    sum.view = plan.view(0, plan.sum);
  }
  return plan;
}

/// Slot 6 is a sum of three lanes, and slot 7 a lane of `sum`.
int addLane(TrainPlan &plan, int sum, int lane = 0) {
  const int whole = plan.addFrameSlot(0, {1, 1}, 3);
  plan.at(whole).span = abi::Span::sum;
  const int made = plan.addSlot(0, {1, 1});
  plan.at(made).span = abi::Span::sum;
  plan.at(made).offset = plan.program().frames.back().copies[0];
  plan.at(made).sum = sum;
  plan.at(made).lane = lane;
  return made;
}

/// A slot that joins others, where the sum is.
int join(TrainPlan &plan, std::vector<int> members) {
  const int made = plan.addSlot(0, {1, 1});
  plan.at(made).span = abi::Span::sum;
  plan.at(made).offset = plan.at(plan.sum).offset;
  plan.at(made).members = std::move(members);
  return made;
}

struct WrongPlan {
  const char *message;
  std::function<void(TrainPlan &)> change;
};

TEST_F(TrainingPlanTest, RunsWhatIsRight) {
  ASSERT_EQ(open(testedPlan(), evalPlan()), "");
  auto opened = Artifact::openTraining(path);
  EXPECT_STREQ(opened->train->plan().entry()->c_str(), "train");
  EXPECT_STREQ(opened->eval->plan().entry()->c_str(), "eval");
  // Who does not train does not see the plan that learns.
  auto all = Artifact::openAll(path);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 1u);

  SessionOptions options;
  options.pin = false;
  auto session = createSession(opened->train, options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const float x[] = {1, 2, 3};
  const double rate = 1;
  float loss = 0, w = 0;
  StepBinding binding;
  binding.micro_batches = 3;
  binding.inputs = {reinterpret_cast<const uint8_t *>(x),
                    reinterpret_cast<const uint8_t *>(&rate)};
  binding.outputs = {reinterpret_cast<uint8_t *>(&loss)};
  for (float expected : {3.f, 18.f, 108.f}) {
    ASSERT_TRUE((*session)->run(binding).ok());
    EXPECT_EQ(loss, expected);
    ASSERT_TRUE((*session)->readState(0, &w).ok());
    EXPECT_EQ(w, expected);
  }
  w = 1;
  ASSERT_TRUE((*session)->writeState(0, &w).ok());
  ASSERT_TRUE((*session)->run(binding).ok());
  EXPECT_EQ(loss, 6);
  binding.micro_batches = 2;
  EXPECT_NE((*session)->run(binding).message().find(
                "a step of 2 micro-batches: a step of this plan has 3"),
            std::string::npos);
}

/// A slot and the memory of its port may hold values for other times.
TEST_F(TrainingPlanTest, PortsOfAnotherSpanAreCopied) {
  const float x[] = {1, 2, 3};
  const double rate = 1;
  auto run = [&](const TrainPlan &plan) {
    EXPECT_EQ(open(plan, evalPlan()), "");
    auto opened = Artifact::openTraining(path);
    SessionOptions options;
    options.pin = false;
    auto session = createSession(opened->train, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    std::vector<float> loss(3);
    StepBinding binding;
    binding.micro_batches = 3;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x),
                      reinterpret_cast<const uint8_t *>(&rate)};
    binding.outputs = {reinterpret_cast<uint8_t *>(loss.data())};
    EXPECT_TRUE((*session)->run(binding).ok());
    return loss;
  };
  using Losses = std::vector<float>;
  // A sum for each micro-batch.
  TrainPlan each = testedPlan();
  each.outputs[0].per_step = false;
  for (int m : {0, 1}) {
    each.actions().push_back(each.actions().back());
    each.actions().back().micro_batch = m;
  }
  EXPECT_EQ(run(each), (Losses{3, 3, 3}));
  // The first micro-batch of an input for all, and so of the step.
  TrainPlan first = testedPlan();
  first.at(first.x).span = abi::Span::step;
  std::erase_if(first.actions(), [](const ActionSpec &action) {
    return action.kind == abi::ActionKind::load_input && action.micro_batch > 0;
  });
  EXPECT_EQ(run(first), (Losses{1.5f, 0, 0}));
  // What each micro-batch makes, but only that of the first.
  TrainPlan own = testedPlan();
  const int y = own.addSlot(0, {1, 1});
  own.program().units[TrainPlan::kAdd].instructions.push_back(
      dotOf(own, own.x, own.w, y));
  own.actions().pop_back();
  own.actions().insert(own.actions().begin() + 4,
                       {abi::ActionKind::store_output, 0, 0, y});
  EXPECT_EQ(run(own), (Losses{0.5f, 0, 0}));
}

TEST_F(TrainingPlanTest, RefusesWrongSlots) {
  const WrongPlan wrong[] = {
      {"slot 3 has an unknown span",
       [](TrainPlan &p) { p.at(p.sum).span = abi::Span(3); }},
      {"slot 5 holds a value for a whole step, and is not in the arena",
       [](TrainPlan &p) { p.at(p.w).span = abi::Span::step; }},
      {"slot 1 holds a value for a whole step, and is not in the arena",
       [](TrainPlan &p) { p.at(p.zero).span = abi::Span::sum; }},
      {"slot 6 holds a value for a whole step, and is not in the arena",
       [](TrainPlan &p) {
         p.at(p.addFrameSlot(0, {1, 1}, 3)).span = abi::Span::step;
       }},
      {"slot 7 is a lane of slot 99 of 8",
       [](TrainPlan &p) { addLane(p, 99); }},
      {"slot 7 is lane 3 of 3", [](TrainPlan &p) { addLane(p, 6, 3); }},
      {"slot 7 is lane -1 of 3", [](TrainPlan &p) { addLane(p, 6, -1); }},
      {"slot 7 is a lane, and is no sum in the arena, or of no sum in a frame",
       [](TrainPlan &p) { addLane(p, p.sum); }},
      {"slot 7 is a lane, and is no sum in the arena, or of no sum in a frame",
       [](TrainPlan &p) { p.at(addLane(p, 6)).span = abi::Span::step; }},
      {"slot 7 lies elsewhere than the lane that it is",
       [](TrainPlan &p) { p.at(addLane(p, 6)).offset += 64; }},
      {"is a lane of a sum that ",
       [](TrainPlan &p) {
         const int lane = addLane(p, 7);
         std::swap(p.at(6), p.at(lane));
         p.at(7).offset = std::numeric_limits<int64_t>::max();
       }},
      {"slot 6 holds a value for a whole step, and is not in the arena",
       [](TrainPlan &p) {
         p.at(p.addSlot(0, {1}, abi::Space::constant)).span = abi::Span::step;
       }},
      {"slot 6 joins slot 99 of 7", [](TrainPlan &p) { join(p, {99}); }},
      {"slot 6 joins slot -1 of 7", [](TrainPlan &p) { join(p, {-1}); }},
      {"slot 6 joins what is not in the arena, or of another span or type",
       [](TrainPlan &p) { join(p, {p.zero}); }},
      {"slot 6 joins what is not in the arena, or of another span or type",
       [](TrainPlan &p) { join(p, {p.x}); }},
      {"slot 7 joins what is not in the arena, or of another span or type",
       [](TrainPlan &p) { join(p, {join(p, {p.sum})}); }},
      {"slot 6 joins what lies elsewhere",
       [](TrainPlan &p) { p.at(join(p, {p.sum})).offset += 64; }},
      {"slot 3 sums micro-batches up, in a plan whose steps may lack some",
       [](TrainPlan &p) { p.full_steps = false; }},
      {"slot 5 names state 1 of 1", [](TrainPlan &p) { p.at(p.w).offset = 1; }},
      {"slot 5 names state -1 of 1",
       [](TrainPlan &p) { p.at(p.w).offset = -1; }},
      {"slot 5 has another size than its state",
       [](TrainPlan &p) {
         p.states[0].shape = {2};
         p.states[0].bytes = 8;
         p.states[0].weight = -1;
       }},
      {"slot 5 lies in an unknown space",
       [](TrainPlan &p) { p.at(p.w).space = abi::Space(5); }},
  };
  for (const WrongPlan &each : wrong) {
    TrainPlan plan = trainPlan();
    each.change(plan);
    expectError(plan, each.message);
  }
}

TEST_F(TrainingPlanTest, RefusesWrongStates) {
  const WrongPlan wrong[] = {
      {"state '' has no name", [](TrainPlan &p) { p.states[0].name = ""; }},
      {"state 'w' has the name of another one",
       [](TrainPlan &p) { p.addState(0, "w", {4}); }},
      {"state 'w' has an unknown role",
       [](TrainPlan &p) { p.states[0].role = abi::StateRole(4); }},
      {"state 'w' has an unknown element type",
       [](TrainPlan &p) { p.states[0].dtype = abi::DType(99); }},
      {"state 'w' says it has 8 bytes where its shape needs 4",
       [](TrainPlan &p) { p.states[0].bytes = 8; }},
      {"state 'w' has the negative extent -1",
       [](TrainPlan &p) { p.states[0].shape = {-1, -1}; }},
      {"state 'w' is a ring without a dimension or a place",
       [](TrainPlan &p) { p.states[0].ring_dim = 0; }},
      {"state 'w' is a ring without a dimension or a place",
       [](TrainPlan &p) {
         p.states[0].ring_dim = 2;
         p.states[0].ring_place = 0;
       }},
      {"state 'w' is a ring whose place is no number",
       [](TrainPlan &p) {
         p.states[0].shape = {1};
         p.states[0].ring_dim = p.states[0].ring_place = 0;
       }},
      {"state 'w' begins with weight 2 of 2",
       [](TrainPlan &p) { p.states[0].weight = 2; }},
      {"state 'w' begins with weight -2 of 2",
       [](TrainPlan &p) { p.states[0].weight = -2; }},
      {"state 'w' begins with a weight of another type or size",
       [](TrainPlan &p) { p.states[0].dtype = abi::DType::i32; }},
      {"state 'w' begins with a weight of another type or size",
       [](TrainPlan &p) {
         p.addWeight(0, {2}, {1, 2});
         p.states[0].weight = 2;
       }},
  };
  for (const WrongPlan &each : wrong) {
    TrainPlan plan = trainPlan();
    each.change(plan);
    expectError(plan, each.message);
  }
}

TEST_F(TrainingPlanTest, RefusesWrongUsesOfStates) {
  const WrongPlan wrong[] = {
      {"load instruction 0 'node' uses slot 5, a state, when loading",
       [](TrainPlan &p) { p.program().load = {copyOf(p.w, p.x)}; }},
      {"load instruction 0 'node' uses slot 5, a state, when loading",
       [](TrainPlan &p) { p.program().load = {copyOf(p.zero, p.w)}; }},
      {"unit 'U0' instruction 0 'node' writes a state, in a plan whose steps "
       "may lack micro-batches",
       [](TrainPlan &p) {
         p.full_steps = false;
         p.at(p.sum).span = abi::Span::micro_batch;
       }},
      {"action 'F0: dot', micro-batch 2 reads a state that action 'U0: node', "
       "micro-batch 2 has written for the next step",
       [](TrainPlan &p) {
         p.actions().push_back({abi::ActionKind::run, 2, TrainPlan::kAdd});
       }},
      {"reads a state that action 'U0: node', micro-batch 2 has written for "
       "the "
       "next step",
       [](TrainPlan &p) { p.actions().back().slot = p.w; }},
      {"a state, in a plan for several sequences",
       [](TrainPlan &p) {
         p.sequences = 2;
         p.actions().back().slot = p.w;
       }},
      {"action 'input x', micro-batch 1 uses a state, which it may "
       "not",
       [](TrainPlan &p) { p.actions()[4].slot = p.w; }},
  };
  for (const WrongPlan &each : wrong) {
    TrainPlan plan = trainPlan();
    each.change(plan);
    expectError(plan, each.message);
  }
}

TEST_F(TrainingPlanTest, RefusesWrongSums) {
  const WrongPlan wrong[] = {
      {"before anything is written there",
       [](TrainPlan &p) { p.actions().erase(p.actions().begin() + 1); }},
      {"reads a sum of 2 micro-batches, and needs one of 3",
       [](TrainPlan &p) {
         p.actions().erase(p.actions().end() - 4, p.actions().end() - 2);
       }},
      // No action is of the last micro-batch.
      {"reads a sum of 3 micro-batches, and needs one of 4",
       [](TrainPlan &p) { p.micro_batches = 4; }},
      {"action 'output loss', micro-batch 2 reads a sum of 1 micro-batches, "
       "and "
       "needs one of 3",
       [](TrainPlan &p) {
         p.actions().insert(p.actions().begin() + 4, p.actions().back());
         p.actions().pop_back();
       }},
  };
  for (const WrongPlan &each : wrong) {
    TrainPlan plan = trainPlan();
    each.change(plan);
    expectError(plan, each.message);
  }
}

TEST_F(TrainingPlanTest, RefusesWrongPortsOfAStep) {
  const WrongPlan wrong[] = {
      {"output 'loss' of a step is stored 0 times",
       [](TrainPlan &p) { p.actions().pop_back(); }},
      {"output 'loss' of a step is stored 2 times",
       [](TrainPlan &p) {
         p.actions().push_back(p.actions().back());
         p.actions().back().micro_batch = 1;
       }},
      {"output 'loss' of micro-batch 2 is stored twice",
       [](TrainPlan &p) { p.actions().push_back(p.actions().back()); }},
      {"output 'loss' of micro-batch 0 is never stored",
       [](TrainPlan &p) { p.outputs[0].per_step = false; }},
      {"input or output 'loss' counts samples, and is the same for all of a "
       "step",
       [](TrainPlan &p) { p.outputs[0].batch_axis = 0; }},
      {"writes a value of the whole step that action 'input learning_rate', "
       "micro-batch 0 has written",
       [](TrainPlan &p) {
         p.actions().insert(p.actions().begin(), p.actions().front());
       }},
  };
  for (const WrongPlan &each : wrong) {
    TrainPlan plan = trainPlan();
    each.change(plan);
    expectError(plan, each.message);
  }
}

TEST_F(TrainingPlanTest, BothPlansHaveTheSameStates) {
  PlanSpec eval = evalPlan();
  eval.states[0].dtype = abi::DType::i32;
  eval.states[0].weight = -1;
  expectError(trainPlan(), "plan 1 has another state w than plan 0", eval);
  eval = evalPlan();
  eval.programs[0].slots.back().bytes = 8;
  eval.programs[0].slots.back().shape = {2, 1};
  eval.states[0].bytes = 8;
  eval.states[0].shape = {2, 1};
  eval.states[0].weight = -1;
  eval.programs[0].units[0].instructions = {};
  eval.programs[0].units[0].instructions = {
      copyOf(1, eval.programs[0].actions[2].slot)};
  expectError(trainPlan(), "plan 1 has another state w than plan 0", eval);
}

TEST_F(TrainingPlanTest, BothPlansHaveTheSameDevices) {
  TrainPlan train = trainPlan();
  train.devices[0].kind = abi::DeviceKind::cpu;
  PlanSpec eval = evalPlan();
  eval.addDevice();
  expectError(trainPlan(), "plan 1 is for another number of devices than",
              eval);
  eval = evalPlan();
  eval.devices[0].kind = abi::DeviceKind::remote_cpu;
  expectError(train, "plan 1 is for devices of other kinds than plan 0", eval);
}

TEST_F(TrainingPlanTest, NeedsBothPlans) {
  const char *message = "is of a model that is not trained";
  TrainPlan train = trainPlan();
  PlanSpec eval = evalPlan();
  eval.entry = "other";
  expectError(train, message, eval);
  train.entry = "eval";
  eval = evalPlan();
  eval.inputs.clear();
  expectError(train, "plan 1 has other inputs or outputs than plan 0",
              evalPlan());
  writeFile(path,
            artifactBytes(encode(evalPlan()), evalPlan().weight_bytes, {}));
  EXPECT_NE(Artifact::openTraining(path).status().message().find(message),
            std::string::npos);
  writeFile(path,
            artifactBytes(encode(trainPlan()), trainPlan().weight_bytes, {}));
  EXPECT_NE(Artifact::openTraining(path).status().message().find(message),
            std::string::npos);
  EXPECT_NE(Artifact::open(path).status().message().find(
                "has no plan that computes outputs"),
            std::string::npos);
}

} // namespace
} // namespace partita::test

//===- TrainerTest.cpp - A model that learns, and artifacts that cannot ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Trainer.h"

#include "test/unit/runtime/Trainings.h"

#include <functional>
#include <gtest/gtest.h>

namespace partita::test {
namespace {

using namespace runtime;
using runtime::train::Trainer;

class TrainerTest : public testing::Test {
protected:
  void TearDown() override { ::unlink(path.c_str()); }

  Expected<std::unique_ptr<Trainer>> open(const PlanSpec &train,
                                          const PlanSpec &eval) {
    writeFile(path, trainingBytes(train, eval));
    SessionOptions options;
    options.pin = false;
    return Trainer::open(path, options);
  }
  void expectError(const PlanSpec &train, const PlanSpec &eval,
                   const std::string &part) {
    auto trainer = open(train, eval);
    ASSERT_FALSE(trainer.ok()) << "expected: " << part;
    EXPECT_NE(trainer.status().message().find(part), std::string::npos)
        << "got: " << trainer.status().message();
  }

  const std::string path = temporary("trainer.partita");
};

const uint8_t *bytesOf(const float *values) {
  return reinterpret_cast<const uint8_t *>(values);
}

void learnAndEvaluate(Trainer &trainer) {
  ASSERT_EQ(trainer.inputs().size(), 1u);
  EXPECT_EQ(trainer.inputs()[0].name, "x");
  EXPECT_EQ(trainer.inputs()[0].shape, std::vector<int64_t>{1});
  EXPECT_EQ(trainer.microBatches(), 3);
  EXPECT_EQ(trainer.samplesPerStep(), 3);
  EXPECT_EQ(trainer.samplesPerMicroBatch(), 1);
  ASSERT_EQ(trainer.stateCount(), 1);
  const float x[] = {1, 2, 3}, one = 1;
  const uint8_t *data[] = {bytesOf(x)}, *sample[] = {bytesOf(&one)};
  auto evaluated = [&] {
    auto result = trainer.evaluate(sample);
    EXPECT_TRUE(result.ok());
    return result ? result->lossSum : -1;
  };
  // The evaluation sees what a step has left.
  EXPECT_EQ(evaluated(), 0.5);
  for (double expected : {3., 18., 108.}) {
    auto step = trainer.step(data);
    ASSERT_TRUE(step.ok()) << step.status().message();
    EXPECT_EQ(step->loss, expected);
    EXPECT_EQ(step->learningRate, 0.5);
    EXPECT_EQ(step->gradientNorm, 0);
    EXPECT_EQ(evaluated(), expected);
  }
  EXPECT_EQ(trainer.steps(), 3);
  const float w = 1;
  ASSERT_TRUE(trainer.writeState(0, &w).ok());
  EXPECT_EQ(evaluated(), 1);
  EXPECT_EQ(trainer.step(data)->loss, 6);
  float now = 0;
  ASSERT_TRUE(trainer.readState(0, &now).ok());
  EXPECT_EQ(now, 6);
}

/// The host sees the states of the first kind, and not those of the second.
TEST_F(TrainerTest, LearnsAndEvaluates) {
  for (abi::DeviceKind kind :
       {abi::DeviceKind::cpu, abi::DeviceKind::remote_cpu}) {
    TrainPlan train = trainPlan();
    PlanSpec eval = evalPlan();
    train.devices[0].kind = eval.devices[0].kind = kind;
    auto made = open(train, eval);
    ASSERT_TRUE(made.ok()) << made.status().message();
    learnAndEvaluate(**made);
  }
}

TEST_F(TrainerTest, SaysWhatItIsNotGiven) {
  auto trainer = open(trainPlan(), evalPlan());
  ASSERT_TRUE(trainer.ok());
  EXPECT_EQ((*trainer)->step({}).status().message(),
            "a step needs 1 inputs, and has 0");
  EXPECT_EQ((*trainer)->evaluate({}).status().message(),
            "an evaluation needs 1 inputs, and has 0");
  const uint8_t *none[] = {nullptr};
  EXPECT_EQ((*trainer)->step(none).status().message(),
            "input 'x' is not given");
  EXPECT_EQ((*trainer)->evaluate(none).status().message(),
            "input 'x' is not given");
}

TEST_F(TrainerTest, StopsWhereTheLossIsNotFinite) {
  auto trainer = open(trainPlan(), evalPlan());
  ASSERT_TRUE(trainer.ok());
  const float x[] = {3e38f, 3e38f, 3e38f};
  const uint8_t *data[] = {bytesOf(x)};
  std::string message;
  for (int i = 0; i < 3 && message.empty(); ++i)
    if (auto step = (*trainer)->step(data); !step)
      message = step.status().message();
  EXPECT_NE(message.find("is not finite"), std::string::npos) << message;
}

struct WrongTraining {
  const char *message;
  std::function<void(TrainPlan &, PlanSpec &)> change;
};

TEST_F(TrainerTest, RefusesWrongInputs) {
  const WrongTraining wrong[] = {
      {"input 'x' of",
       [](TrainPlan &p, PlanSpec &) {
         p.inputs[0].shape = {};
         p.at(p.x).shape = {};
       }},
      {"has 0 samples",
       [](TrainPlan &p, PlanSpec &) {
         p.inputs.push_back({"empty", abi::DType::f32, {0, 4}, -1});
       }},
      {"has 2 samples, and 'x' has 1",
       [](TrainPlan &p, PlanSpec &) {
         p.inputs.push_back({"y", abi::DType::f32, {2}, -1});
       }},
      {"has no input of samples",
       [](TrainPlan &p, PlanSpec &e) {
         p.inputs.erase(p.inputs.begin());
         std::erase_if(p.actions(), [](const ActionSpec &action) {
           return action.kind == abi::ActionKind::load_input &&
                  action.subject == 0;
         });
         p.program().units[TrainPlan::kAdd].instructions[0].views[0] =
             p.view(0, p.zero);
         p.actions()[0].subject = 0;
         e.inputs.clear();
         e.programs[0].actions.erase(e.programs[0].actions.begin());
         e.programs[0].units[0].instructions[0].views[0] = e.view(0, 1);
       }},
      {"asks for 'learning_rate', which is not known here",
       [](TrainPlan &p, PlanSpec &) {
         p.inputs[1].shape = {1, 1, 2};
         p.at(p.rate).shape = {1, 1, 2};
         p.at(p.rate).bytes = 16;
       }},
      {"asks for 'learning_rate', which is not known here",
       [](TrainPlan &p, PlanSpec &) {
         p.inputs[1] = {"learning_rate", abi::DType::f32, {2}, -1, true};
         p.at(p.rate).shape = {2};
         p.at(p.rate).dtype = abi::DType::f32;
       }},
      {"asks for 'speed', which is not known here",
       [](TrainPlan &p, PlanSpec &) { p.inputs[1].name = "speed"; }},
      {"has no learning rates",
       [](TrainPlan &p, PlanSpec &) { p.training = "{}"; }},
      {"does not say how it is trained",
       [](TrainPlan &p, PlanSpec &) { p.training = ""; }},
  };
  for (const WrongTraining &each : wrong) {
    TrainPlan train = trainPlan();
    PlanSpec eval = evalPlan();
    each.change(train, eval);
    expectError(train, eval, each.message);
  }
}

TEST_F(TrainerTest, RefusesOtherEvaluations) {
  const WrongTraining wrong[] = {
      {"evaluates more micro-batches than it is trained with",
       [](TrainPlan &, PlanSpec &e) { e = evalPlan(0.5f, 4); }},
      {"evaluates with the input 'z', without which it is trained",
       [](TrainPlan &, PlanSpec &e) { e.inputs[0].name = "z"; }},
      {"evaluates with the input 'learning_rate', without which it is trained",
       [](TrainPlan &, PlanSpec &e) {
         e.inputs.push_back({"learning_rate", abi::DType::f64, {1}, -1, true});
       }},
      {"evaluates with another input 'x' than it is trained with",
       [](TrainPlan &, PlanSpec &e) {
         e.inputs[0].shape = {1, 1, 1};
         e.programs[0].slots[2].shape = {1, 1, 1};
       }},
      {"evaluates with another input 'x' than it is trained with",
       [](TrainPlan &p, PlanSpec &) {
         p.inputs[0].dtype = abi::DType::i32;
         p.at(p.addSlot(0, {1, 1})).dtype = abi::DType::i32;
         for (ActionSpec &action : p.actions())
           if (action.kind == abi::ActionKind::load_input &&
               action.subject == 0)
             action.slot = static_cast<int>(p.program().slots.size()) - 1;
         p.program().units[TrainPlan::kAdd].instructions[0].views[0] =
             p.view(0, p.zero);
       }},
      {"has no loss",
       [](TrainPlan &, PlanSpec &e) { e.outputs[0].name = "loss"; }},
      {"has no loss",
       [](TrainPlan &p, PlanSpec &) { p.outputs[0].name = "loss.sum"; }},
  };
  for (const WrongTraining &each : wrong) {
    TrainPlan train = trainPlan();
    PlanSpec eval = evalPlan();
    each.change(train, eval);
    expectError(train, eval, each.message);
  }
}

TEST_F(TrainerTest, AnEvaluationMayNeedFewerInputs) {
  TrainPlan train = trainPlan();
  train.inputs.push_back({"seed", abi::DType::i64, {1}, -1});
  auto trainer = open(train, evalPlan());
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const float one = 2;
  const uint8_t *data[] = {bytesOf(&one), nullptr};
  EXPECT_EQ((*trainer)->evaluate(data)->lossSum, 1);
}

TEST_F(TrainerTest, RefusesStatesOfNoDevice) {
  TrainPlan train = trainPlan();
  StateSpec state = train.states[0];
  state.name = "v";
  train.states.push_back(state);
  expectError(train, evalPlan(), "state 'v' of '" + path + "' is on no device");
}

/// A plan that has a part of a step computes it; one that must have all of it
/// computes copies of the last micro-batch, too.
TEST_F(TrainerTest, EvaluatesSeveralMicroBatches) {
  for (const bool full : {false, true}) {
    PlanSpec eval = evalPlan(0.5f, 3);
    eval.full_steps = full;
    auto trainer = open(trainPlan(), eval);
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    EXPECT_EQ((*trainer)->mostEvaluated(), 3);
    const float x[] = {2, 4, 8};
    const uint8_t *data[] = {bytesOf(x)};
    const double sums[] = {1, 3, 7};
    for (int64_t count = 1; count <= 3; ++count) {
      auto result = (*trainer)->evaluate(data, count);
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_EQ(result->lossSum, sums[count - 1]) << full << count;
    }
    for (int64_t count : {0, 4})
      EXPECT_EQ((*trainer)->evaluate(data, count).status().message(),
                "an evaluation of " + std::to_string(count) +
                    " micro-batches: it has 1 to 3");
  }
}

TEST_F(TrainerTest, CountsLabelsWhereThePlanDoes) {
  PlanSpec eval = evalPlan();
  const auto unlabelled = open(trainPlan(), eval);
  ASSERT_TRUE(unlabelled.ok()) << unlabelled.status().message();
  EXPECT_FALSE((*unlabelled)->countsLabels());
  for (const char *name :
       {"labels.count", "labels.right", "labels.right_of_five"}) {
    ActionSpec store = eval.programs[0].actions[2];
    store.subject = static_cast<int>(eval.outputs.size());
    eval.programs[0].actions.push_back(store);
    eval.outputs.push_back({name, abi::DType::f32, {1, 1}, -1});
  }
  auto trainer = open(trainPlan(), eval);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  EXPECT_TRUE((*trainer)->countsLabels());
  const float x = 8;
  const uint8_t *data[] = {bytesOf(&x)};
  auto result = (*trainer)->evaluate(data);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->labels, 4);
  EXPECT_EQ(result->right, 4);
  EXPECT_EQ(result->rightOfFive, 4);
}

} // namespace
} // namespace partita::test

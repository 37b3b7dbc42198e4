//===- TrainerCapiTest.cpp - Training as a C program sees it --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/partita.h"
#include "test/unit/capi/TrainInC.h"
#include "test/unit/runtime/Trainings.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

namespace partita::test {
namespace {

/// y = w * x, of which a step makes w the sum over its 3 samples (Trainings.h).
class TrainerCapi : public testing::Test {
protected:
  void SetUp() override {
    path = temporary("learning.partita");
    folder = temporary("checkpoints");
    writeFile(path, trainingBytes(trainPlan(), evalPlan()));
    trainer = open();
    ASSERT_TRUE(trainer) << partita_last_error();
  }
  void TearDown() override {
    partita_trainer_close(trainer);
    ::unlink(path.c_str());
    std::filesystem::remove_all(folder);
  }

  partita_trainer *open(uint64_t seed = 0) {
    partita_trainer_options options;
    partita_default_trainer_options(&options);
    options.threads = 1;
    options.pin = 0;
    options.seed = seed;
    partita_trainer *opened = nullptr;
    EXPECT_EQ(partita_trainer_open(path.c_str(), &options, &opened), PARTITA_OK)
        << partita_last_error();
    return opened;
  }
  partita_status step(std::vector<float> x, double *loss = nullptr,
                      partita_trainer *with = nullptr) {
    const void *inputs[] = {x.data()};
    partita_step_result result = {};
    result.size = sizeof result;
    const partita_status status = partita_trainer_step(
        with ? with : trainer, inputs, static_cast<int64_t>(x.size()), &result);
    if (loss)
      *loss = result.loss;
    return status;
  }
  float weight() {
    float w = -1;
    EXPECT_EQ(partita_trainer_get_state(trainer, 0, &w, sizeof w), PARTITA_OK)
        << partita_last_error();
    return w;
  }
  void setWeight(float w) {
    EXPECT_EQ(partita_trainer_set_state(trainer, 0, &w, sizeof w), PARTITA_OK);
  }
  void says(partita_status status, const std::string &part,
            bool input = false) {
    EXPECT_EQ(status, PARTITA_ERROR) << "expected: " << part;
    EXPECT_NE(std::string(partita_last_error()).find(part), std::string::npos)
        << partita_last_error();
    EXPECT_EQ(partita_last_error_in_input() != 0, input) << part;
  }
  std::string checkpoint(int step) const {
    char name[32];
    std::snprintf(name, sizeof name, "/step-%08d", step);
    return folder + name;
  }

  std::string path, folder;
  partita_trainer *trainer = nullptr;
};

TEST_F(TrainerCapi, Describes) {
  ASSERT_EQ(partita_trainer_input_count(trainer), 1u);
  partita_port port = {};
  port.size = sizeof port;
  ASSERT_EQ(partita_trainer_input(trainer, 0, &port), PARTITA_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.type, PARTITA_F32);
  ASSERT_EQ(port.rank, 2);
  EXPECT_EQ(port.shape[0], 1);
  EXPECT_EQ(port.shape[1], 1);
  EXPECT_EQ(port.batch_axis, 0);
  EXPECT_EQ(port.bytes, 4);
  EXPECT_EQ(port.dimensions[1], -1);
  EXPECT_EQ(port.whole, nullptr);
  EXPECT_EQ(partita_trainer_step_samples(trainer), 3);
  EXPECT_EQ(partita_trainer_evaluation_samples(trainer), 1);
  ASSERT_EQ(partita_trainer_state_count(trainer), 1u);
  partita_state state = {};
  state.size = sizeof state;
  ASSERT_EQ(partita_trainer_state(trainer, 0, &state), PARTITA_OK);
  EXPECT_STREQ(state.name, "w");
  EXPECT_EQ(state.role, PARTITA_PARAMETER);
  EXPECT_EQ(state.type, PARTITA_F32);
  ASSERT_EQ(state.rank, 2);
  EXPECT_EQ(state.shape[1], 1);
  EXPECT_EQ(state.bytes, 4);
  size_t index = 7;
  EXPECT_EQ(partita_trainer_find_input(trainer, "x", &index), PARTITA_OK);
  EXPECT_EQ(index, 0u);
  says(partita_trainer_find_input(trainer, "z", &index),
       "the trainer has no input 'z'; it has 'x'");
  says(partita_trainer_find_state(trainer, nullptr, &index),
       "the trainer has no state ''; it has 'w'");
  EXPECT_STREQ(partita_trainer_remark(trainer), "");
}

TEST_F(TrainerCapi, LearnsAndEvaluates) {
  double loss = 0;
  for (double expected : {3., 18., 108.}) {
    ASSERT_EQ(step({1, 2, 3}, &loss), PARTITA_OK) << partita_last_error();
    EXPECT_EQ(loss, expected);
    EXPECT_EQ(weight(), expected);
  }
  EXPECT_EQ(partita_trainer_steps(trainer), 3);
  // Any number of samples, and no state changes.
  const float x[] = {1, 2};
  const void *inputs[] = {x};
  partita_evaluation evaluation = {};
  evaluation.size = sizeof evaluation;
  ASSERT_EQ(partita_trainer_evaluate(trainer, inputs, 2, &evaluation),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(evaluation.loss_sum, 108 + 216);
  EXPECT_EQ(evaluation.loss, 324);
  EXPECT_EQ(evaluation.loss_count, 0);
  EXPECT_EQ(evaluation.labels, 0);
  EXPECT_EQ(weight(), 108);
  setWeight(0.5f);
  EXPECT_EQ(partita_trainer_set_steps(trainer, 10), PARTITA_OK);
  partita_step_result result = {};
  result.size = sizeof result;
  const float three[] = {1, 1, 1};
  const void *data[] = {three};
  ASSERT_EQ(partita_trainer_step(trainer, data, 3, &result), PARTITA_OK);
  EXPECT_EQ(result.step, 11);
  EXPECT_EQ(result.loss, 1.5);
  EXPECT_EQ(result.learning_rate, 0.5);
  EXPECT_EQ(result.gradient_norm, 0);
  EXPECT_EQ(partita_trainer_step(trainer, data, 3, nullptr), PARTITA_OK);
}

TEST_F(TrainerCapi, LearnsInC) {
  const float x[] = {1, 2, 3};
  float w = 0;
  EXPECT_EQ(train_in_c(path.c_str(), x, 3, &w), 108);
  EXPECT_EQ(w, 108);
  EXPECT_EQ(train_in_c("nowhere.partita", x, 3, &w), -1);
}

TEST_F(TrainerCapi, AnyThreadCalls) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k)
        EXPECT_EQ(step({1, 0, 0}), PARTITA_OK) << partita_last_error();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(partita_trainer_steps(trainer), 100);
  EXPECT_EQ(weight(), 0.5f);
}

TEST_F(TrainerCapi, SaysWhatIsWrongAndLivesOn) {
  const float x[] = {1, 2, 3};
  const void *inputs[] = {x}, *none[] = {nullptr};
  says(partita_trainer_step(trainer, inputs, 2, nullptr),
       "there are 2 samples, and a step takes 3");
  says(partita_trainer_step(trainer, none, 3, nullptr),
       "the input 'x' is not given");
  says(partita_trainer_step(trainer, nullptr, 3, nullptr),
       "there is no list of inputs");
  partita_step_result result = {};
  says(partita_trainer_step(trainer, inputs, 3, &result),
       "partita_step_result.size is 0");
  partita_evaluation evaluation = {};
  says(partita_trainer_evaluate(trainer, inputs, 0, &evaluation),
       "takes a multiple of 1");
  says(partita_trainer_evaluate(trainer, inputs, 1, nullptr),
       "there is no place for a partita_evaluation");
  says(partita_trainer_set_steps(trainer, -1), "there cannot be -1 steps");
  float w = 0;
  says(partita_trainer_get_state(trainer, 1, &w, 4),
       "there is none of index 1");
  says(partita_trainer_get_state(trainer, 0, &w, 8),
       "the state 'w' has 4 bytes, and not 8");
  says(partita_trainer_set_state(trainer, 0, nullptr, 4),
       "there is no place for the state 'w'");
  says(partita_trainer_export(trainer, "x.onnx"),
       "was not compiled from an ONNX file");
  says(partita_trainer_export(trainer, nullptr), "there is no path");
  says(partita_trainer_save(trainer, folder.c_str(), 0, nullptr),
       "keep at least 1");
  says(partita_trainer_load_weights(trainer, "nowhere.safetensors"),
       "nowhere.safetensors");
  says(partita_trainer_resume(trainer, folder.c_str(), nullptr),
       "there is no checkpoint in");
  // Nothing of it was a step.
  EXPECT_EQ(partita_trainer_steps(trainer), 0);
  EXPECT_EQ(weight(), 0.5f);
  EXPECT_EQ(step({1, 2, 3}), PARTITA_OK);
}

TEST_F(TrainerCapi, NoTrainerIsAnErrorInWords) {
  const char *text = "there is no trainer";
  size_t index = 0;
  partita_port port = {};
  partita_state state = {};
  says(partita_trainer_input(nullptr, 0, &port), text);
  says(partita_trainer_find_input(nullptr, "x", &index), text);
  says(partita_trainer_step(nullptr, nullptr, 1, nullptr), text);
  says(partita_trainer_evaluate(nullptr, nullptr, 1, nullptr), text);
  says(partita_trainer_set_steps(nullptr, 1), text);
  says(partita_trainer_state(nullptr, 0, &state), text);
  says(partita_trainer_find_state(nullptr, "w", &index), text);
  says(partita_trainer_get_state(nullptr, 0, &index, 4), text);
  says(partita_trainer_set_state(nullptr, 0, &index, 4), text);
  says(partita_trainer_save(nullptr, "x", 1, nullptr), text);
  says(partita_trainer_resume(nullptr, "x", nullptr), text);
  says(partita_trainer_load_checkpoint(nullptr, "x", nullptr), text);
  says(partita_trainer_load_weights(nullptr, "x"), text);
  says(partita_trainer_export(nullptr, "x"), text);
  EXPECT_EQ(partita_trainer_input_count(nullptr), 0u);
  EXPECT_EQ(partita_trainer_state_count(nullptr), 0u);
  EXPECT_EQ(partita_trainer_steps(nullptr), 0);
  EXPECT_EQ(partita_trainer_step_samples(nullptr), 0);
  EXPECT_EQ(partita_trainer_evaluation_samples(nullptr), 0);
  EXPECT_STREQ(partita_trainer_remark(nullptr), "");
  partita_trainer_close(nullptr);
}

TEST_F(TrainerCapi, WrongOptionsAreErrors) {
  partita_trainer *other = nullptr;
  auto fails = [&](auto change, const std::string &part) {
    partita_trainer_options options;
    partita_default_trainer_options(&options);
    change(options);
    says(partita_trainer_open(path.c_str(), &options, &other), part);
    EXPECT_EQ(other, nullptr);
  };
  fails([](auto &o) { o.threads = -1; }, "partita_trainer_options.threads is");
  fails([](auto &o) { o.cpu_level = 2; }, "partita_trainer_options.cpu_level");
  fails([](auto &o) { o.timeout_s = -1; }, "partita_trainer_options.timeout_s");
  fails([](auto &o) { o.size = 1; }, "partita_trainer_options.size is 1");
  says(partita_trainer_open("nowhere.partita", nullptr, &other),
       "nowhere.partita");
  says(partita_trainer_open(nullptr, nullptr, &other), "there is no path");
}

TEST_F(TrainerCapi, AWrongStepLosesTheStates) {
  ASSERT_EQ(step({1, 2, 3}), PARTITA_OK);
  ASSERT_EQ(partita_trainer_save(trainer, folder.c_str(), 2, nullptr),
            PARTITA_OK)
      << partita_last_error();
  ASSERT_EQ(step({3e38f, 3e38f, 3e38f}), PARTITA_ERROR);
  EXPECT_NE(std::string(partita_last_error()).find("is not finite"),
            std::string::npos);
  // Nothing goes on by accident, and nothing that is lost is kept.
  const std::string lost = "the parameters are lost, because the loss of step";
  const float x[] = {1, 2, 3};
  const void *inputs[] = {x};
  partita_evaluation evaluation = {};
  evaluation.size = sizeof evaluation;
  says(step({1, 2, 3}), lost);
  says(partita_trainer_evaluate(trainer, inputs, 1, &evaluation), lost);
  says(partita_trainer_save(trainer, folder.c_str(), 2, nullptr), lost);
  EXPECT_FALSE(std::filesystem::exists(checkpoint(2)));
  setWeight(1);
  says(step({1, 2, 3}), lost);
  ASSERT_EQ(partita_trainer_resume(trainer, folder.c_str(), nullptr),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(partita_trainer_steps(trainer), 1);
  double loss = 0;
  ASSERT_EQ(step({1, 2, 3}, &loss), PARTITA_OK);
  EXPECT_EQ(loss, 18);
}

TEST_F(TrainerCapi, GoesOnFromCheckpoints) {
  partita_position position = {sizeof position, 2, 6, "mine"};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(step({1, 0.5f, 0.5f}), PARTITA_OK);
    ASSERT_EQ(partita_trainer_save(trainer, folder.c_str(), 2, &position),
              PARTITA_OK)
        << partita_last_error();
    position.sample += 3;
  }
  EXPECT_FALSE(std::filesystem::exists(checkpoint(1)));
  partita_trainer *other = open();
  std::swap(trainer, other);
  position = {sizeof position, 0, 0, "mine"};
  ASSERT_EQ(partita_trainer_load_checkpoint(trainer, checkpoint(2).c_str(),
                                            &position),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(position.epoch, 2);
  EXPECT_EQ(position.sample, 9);
  EXPECT_STREQ(position.order, "mine");
  EXPECT_EQ(weight(), 2);
  EXPECT_EQ(partita_trainer_steps(trainer), 2);
  ASSERT_EQ(partita_trainer_resume(trainer, folder.c_str(), &position),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(position.sample, 12);
  EXPECT_EQ(weight(), 4);
  EXPECT_EQ(partita_trainer_steps(trainer), 3);
  // What differs is refused, and changes nothing.
  setWeight(7);
  position.order = "other";
  says(partita_trainer_resume(trainer, folder.c_str(), &position), "set-up");
  says(partita_trainer_resume(trainer, folder.c_str(), nullptr), "set-up");
  says(partita_trainer_load_checkpoint(trainer, checkpoint(9).c_str(), nullptr),
       "step-00000009");
  EXPECT_EQ(weight(), 7);
  partita_trainer_close(other);
  other = open(/*seed=*/3);
  position.order = "mine";
  says(partita_trainer_resume(other, folder.c_str(), &position),
       "was made with the seed 0: give the same seed");
  partita_trainer_close(other);
}

TEST_F(TrainerCapi, DamagedCheckpointsChangeNothing) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(step({1, 1, 0}), PARTITA_OK);
    ASSERT_EQ(partita_trainer_save(trainer, folder.c_str(), 5, nullptr),
              PARTITA_OK);
  }
  const std::string file = "/model.safetensors";
  std::fstream damaged(checkpoint(2) + file,
                       std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(-1, std::ios::end);
  damaged.put('\x55');
  damaged.close();
  setWeight(7);
  says(partita_trainer_load_checkpoint(trainer, checkpoint(2).c_str(), nullptr),
       "model.safetensors");
  EXPECT_EQ(weight(), 7);
  EXPECT_EQ(partita_trainer_steps(trainer), 2);
  // The newest one that is whole.
  ASSERT_EQ(partita_trainer_resume(trainer, folder.c_str(), nullptr),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(weight(), 1);
  EXPECT_EQ(partita_trainer_steps(trainer), 1);
  EXPECT_NE(std::string(partita_trainer_remark(trainer))
                .find("is damaged, and is called 'damaged-step-00000002' now"),
            std::string::npos)
      << partita_trainer_remark(trainer);
  // What is left is no whole one.
  std::filesystem::resize_file(checkpoint(1) + file, 5);
  setWeight(7);
  says(partita_trainer_resume(trainer, folder.c_str(), nullptr), "is whole");
  EXPECT_EQ(weight(), 7);
}

TEST_F(TrainerCapi, GoesOnWithAnotherSeedIfThatIsAllowed) {
  ASSERT_EQ(step({1, 2, 3}), PARTITA_OK);
  ASSERT_EQ(partita_trainer_save(trainer, folder.c_str(), 1, nullptr),
            PARTITA_OK);
  partita_trainer_options options;
  partita_default_trainer_options(&options);
  options.seed = 9;
  for (int allowed : {0, 1}) {
    options.allow_changes = allowed;
    partita_trainer *other = nullptr;
    ASSERT_EQ(partita_trainer_open(path.c_str(), &options, &other), PARTITA_OK)
        << partita_last_error();
    const partita_status status =
        partita_trainer_resume(other, folder.c_str(), nullptr);
    if (allowed) {
      EXPECT_EQ(status, PARTITA_OK) << partita_last_error();
      EXPECT_EQ(partita_trainer_steps(other), 1);
      EXPECT_STREQ(partita_trainer_remark(other),
                   "goes on with changes: the seed is 0 there and 9 here");
    } else {
      says(status, "was made with the seed 0");
    }
    partita_trainer_close(other);
  }
}

TEST_F(TrainerCapi, LoadsWeightsOfItsCheckpoints) {
  ASSERT_EQ(step({1, 2, 3}), PARTITA_OK);
  ASSERT_EQ(partita_trainer_save(trainer, folder.c_str(), 1, nullptr),
            PARTITA_OK);
  setWeight(7);
  ASSERT_EQ(partita_trainer_load_weights(
                trainer, (checkpoint(1) + "/model.safetensors").c_str()),
            PARTITA_OK)
      << partita_last_error();
  EXPECT_EQ(weight(), 3);
  setWeight(7);
  // The optimizer has no states here, so its file names none.
  says(partita_trainer_load_weights(
           trainer, (checkpoint(1) + "/optimizer.safetensors").c_str()),
       "has no tensor with the name of a parameter");
  EXPECT_EQ(weight(), 7);
}

} // namespace
} // namespace partita::test

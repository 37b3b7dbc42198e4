//===- SetupTest.cpp - Learning rates, and how they are said --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Setup.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace partita::runtime::train;

namespace {

TEST(RateSchedule, Constant) {
  RateSchedule schedule;
  for (int64_t step : {0, 1, 1000})
    EXPECT_EQ(schedule.rate(0.1, step), 0.1);
  schedule.steps = 10;
  schedule.final = 5; // of other kinds
  EXPECT_EQ(schedule.rate(0.1, 20), 0.1);
}

TEST(RateSchedule, GrowsDuringTheWarmUp) {
  for (const char *kind : {"constant", "step", "linear", "cosine", "wsd"}) {
    RateSchedule schedule{kind, 4, 100, 1000, 10};
    for (int step = 0; step < 4; ++step)
      EXPECT_DOUBLE_EQ(schedule.rate(0.8, step), 0.2 * (step + 1)) << kind;
    EXPECT_DOUBLE_EQ(schedule.rate(0.8, 4), 0.8) << kind;
  }
}

/// StepLR(step_size=30, gamma=0.1) of PyTorch.
TEST(RateSchedule, Steps) {
  RateSchedule schedule{"step"};
  schedule.every = 30;
  schedule.factor = 0.1;
  for (auto [step, rate] : {std::pair(0, 0.05),
                            {29, 0.05},
                            {30, 0.005},
                            {59, 0.005},
                            {60, 0.0005},
                            {89, 0.0005}})
    EXPECT_DOUBLE_EQ(schedule.rate(0.05, step), rate) << step;
  schedule.every = 0; // never
  EXPECT_EQ(schedule.rate(0.05, 1000), 0.05);
}

/// LinearLR(start_factor=0.5, total_iters=4) of PyTorch, from its manual.
TEST(RateSchedule, Linear) {
  RateSchedule schedule{"linear"};
  schedule.steps = 4;
  schedule.final = 0.05;
  const double rates[] = {0.025, 0.03125, 0.0375, 0.04375, 0.05, 0.05};
  for (int step = 0; step < 6; ++step)
    EXPECT_DOUBLE_EQ(schedule.rate(0.025, step), rates[step]) << step;
  EXPECT_EQ(schedule.rate(0.025, 1000000), 0.05);
}

/// CosineAnnealingLR(T_max=10) of PyTorch.
TEST(RateSchedule, Cosine) {
  RateSchedule schedule{"cosine"};
  schedule.steps = 10;
  const double rates[] = {0.1,
                          0.09755282581475769,
                          0.09045084971874737,
                          0.07938926261462366,
                          0.06545084971874737,
                          0.05,
                          0.03454915028125263,
                          0.020610737385376346,
                          0.009549150281252633,
                          0.0024471741852423235,
                          0};
  for (int step = 0; step <= 10; ++step)
    EXPECT_NEAR(schedule.rate(0.1, step), rates[step], 1e-16) << step;
  EXPECT_EQ(schedule.rate(0.1, 11), 0); // it does not rise again
  // With eta_min=0.02, and behind a warm-up.
  schedule.final = 0.02;
  EXPECT_DOUBLE_EQ(schedule.rate(0.1, 5), 0.06);
  EXPECT_EQ(schedule.rate(0.1, 10), 0.02);
  schedule.warmup = 4;
  EXPECT_DOUBLE_EQ(schedule.rate(0.1, 4), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(0.1, 7), 0.06);
  EXPECT_DOUBLE_EQ(schedule.rate(0.1, 10), 0.02);
}

TEST(RateSchedule, Wsd) {
  RateSchedule schedule{"wsd", 2, 20, 0, 10, 0.1};
  EXPECT_DOUBLE_EQ(schedule.rate(1, 1), 1);
  EXPECT_EQ(schedule.rate(1, 9), 1);
  EXPECT_EQ(schedule.rate(1, 10), 1);
  EXPECT_DOUBLE_EQ(schedule.rate(1, 15), 0.55);
  EXPECT_DOUBLE_EQ(schedule.rate(1, 19), 0.19);
  EXPECT_DOUBLE_EQ(schedule.rate(1, 20), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(1, 1000), 0.1);
  schedule.decay = 0;
  EXPECT_EQ(schedule.rate(1, 1000), 1);
}

TEST(RateSchedule, NoStepIsWithoutARate) {
  // Numbers that no file of settings has.
  for (const char *kind : {"constant", "step", "linear", "cosine", "wsd", "x"})
    for (int64_t warmup : {0, 5})
      for (int64_t steps : {0, 3, 5})
        for (int64_t every : {0, 1})
          for (int64_t decay : {0, 3, 100})
            for (int64_t step : {0, 1, 4, 5, 6, 1 << 30})
              EXPECT_TRUE(std::isfinite(
                  RateSchedule{kind, warmup, steps, every, decay}.rate(1,
                                                                       step)))
                  << kind << " " << warmup << " " << steps << " " << step;
}

TEST(Setup, TheScheduleChangesAllGroupsAlike) {
  partita::runtime::train::Setup setup;
  setup.learningRates = {0.1, 0.2, 0};
  setup.schedule = {"linear", 0, 10};
  std::vector<double> rates;
  setup.rates(5, rates);
  ASSERT_EQ(rates.size(), 3u);
  EXPECT_DOUBLE_EQ(rates[0], 0.05);
  EXPECT_DOUBLE_EQ(rates[1], 0.1);
  EXPECT_EQ(rates[2], 0);
  // Without a rate of the others, groups keep theirs.
  setup.learningRates = {0, 0.2};
  setup.rates(5, rates);
  EXPECT_EQ(rates, (std::vector<double>{0, 0.2}));
}

std::string errorOf(const std::string &text) {
  auto setup = parseSetup(text, "m.partita");
  return setup ? "" : setup.status().message();
}

TEST(Setup, ReadsAll) {
  auto setup = parseSetup(
      R"({"loss": "cross_entropy:logits:label,label_smoothing=0.1,)"
      R"(ignore_index=7", "optimizer": "adamw", "learning_rate": [0.1, 1],)"
      R"( "weight_decay": [0.01, 0], "schedule": {"kind": "wsd", "warmup": 1,)"
      R"( "steps": 9, "every": 2, "decay": 3, "final": 0.5, "factor": 0.25},)"
      R"( "scale": {"image": {"divide": 255, "mean": 0.5, "std": 0.25},)"
      R"( "x": {}, "y": 3}})",
      "m.partita");
  ASSERT_TRUE(setup.ok()) << setup.status().message();
  EXPECT_EQ(setup->loss.target, "label");
  EXPECT_EQ(setup->loss.ignoreIndex, 7);
  EXPECT_EQ(setup->optimizer, "adamw");
  EXPECT_EQ(setup->learningRates, (std::vector<double>{0.1, 1}));
  EXPECT_EQ(setup->weightDecays, (std::vector<double>{0.01, 0}));
  EXPECT_EQ(setup->schedule.kind, "wsd");
  EXPECT_EQ(setup->schedule.warmup, 1);
  EXPECT_EQ(setup->schedule.steps, 9);
  EXPECT_EQ(setup->schedule.every, 2);
  EXPECT_EQ(setup->schedule.decay, 3);
  EXPECT_EQ(setup->schedule.final, 0.5);
  EXPECT_EQ(setup->schedule.factor, 0.25);
  ASSERT_EQ(setup->scales.size(), 2u);
  EXPECT_EQ(setup->scales["image"].divide, 255);
  EXPECT_EQ(setup->scales["image"].mean, 0.5);
  EXPECT_EQ(setup->scales["image"].std, 0.25);
  EXPECT_EQ(setup->scales["x"].divide, 1);
  EXPECT_EQ(setup->scales["x"].std, 1);
}

TEST(Setup, NamesOfALoss) {
  auto loss = [](const std::string &text) {
    auto setup = parseSetup("{\"loss\": \"" + text +
                                "\", \"learning_rate\": [1],"
                                " \"weight_decay\": [0]}",
                            "m");
    return setup->loss.target + "|" + std::to_string(setup->loss.ignoreIndex);
  };
  EXPECT_EQ(loss("mse:y"), "target|-100");
  EXPECT_EQ(loss("mse:y:t,reduction=sum"), "t|-100");
  EXPECT_EQ(loss("nll:y:t,ignore_index=-1"), "t|-1");
  EXPECT_EQ(loss("mse"), "|-100");
  EXPECT_EQ(loss(""), "|-100");
  EXPECT_EQ(loss(":"), "target|-100");
  EXPECT_EQ(loss("::,ignore_index="), "|0");
  EXPECT_EQ(loss("nll:a:b:c"), "b:c|-100");
}

TEST(Setup, SaysThatItIsWrong) {
  const std::string none =
      "'m.partita' does not say how it is trained: compile "
      "the model again";
  for (const char *text : {"", "{", "[]", "3", "null", "\"x\"", "{}}",
                           "{\"loss\": 1e999}", "\xff", "{\"a\": \"\xff\"}"})
    EXPECT_EQ(errorOf(text), none) << text;
  EXPECT_EQ(errorOf(std::string(1 << 20, '[')), none);
  const std::string rates = "'m.partita' has no learning rates: compile the "
                            "model again";
  for (const char *text :
       {"{}", R"({"learning_rate": [], "weight_decay": []})",
        R"({"learning_rate": [1]})", R"({"weight_decay": [1]})",
        R"({"learning_rate": 1, "weight_decay": 0})",
        R"({"learning_rate": [1, 2], "weight_decay": [0]})",
        R"({"learning_rate": ["1"], "weight_decay": [0]})",
        R"({"learning_rate": [1], "weight_decay": [null]})",
        R"({"learning_rate": {"a": 1}, "weight_decay": {"a": 1}})"})
    EXPECT_EQ(errorOf(text), rates) << text;
}

TEST(Setup, WhatIsOfAnotherTypeHasItsDefault) {
  auto setup = parseSetup(
      R"({"loss": 3, "optimizer": [], "learning_rate": [1],)"
      R"( "weight_decay": [0], "schedule": {"kind": 1, "warmup": "a",)"
      R"( "steps": 1.5, "every": -3, "decay": 18446744073709551615,)"
      R"( "final": {}, "factor": null}, "scale": [1]})",
      "m");
  ASSERT_TRUE(setup.ok()) << setup.status().message();
  EXPECT_EQ(setup->loss.target, "");
  EXPECT_EQ(setup->optimizer, "");
  EXPECT_EQ(setup->schedule.kind, "");
  EXPECT_EQ(setup->schedule.warmup, 0);
  EXPECT_EQ(setup->schedule.steps, 0);
  EXPECT_EQ(setup->schedule.every, 0);
  EXPECT_EQ(setup->schedule.decay, 0);
  EXPECT_EQ(setup->schedule.final, 0);
  EXPECT_EQ(setup->schedule.factor, 1);
  EXPECT_TRUE(setup->scales.empty());
  EXPECT_TRUE(parseSetup(R"({"learning_rate": [1], "weight_decay": [0],)"
                         R"( "schedule": 3})",
                         "m")
                  .ok());
}

} // namespace

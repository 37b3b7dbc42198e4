//===- TextTest.cpp - Numbers as both programs print them -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/PlanText.h"
#include "runtime/abi/StepPicture.h"

#include <gtest/gtest.h>

using namespace partita::abi;

TEST(Text, Bytes) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1000), "1000 B");
  EXPECT_EQ(bytesText(3 << 19), "1.50 MiB");
  EXPECT_EQ(bytesText(int64_t(5) << 40), "5.00 TiB");
}

TEST(Text, Counts) {
  EXPECT_EQ(countText(128), "128");
  EXPECT_EQ(countText(37120), "37.1 k");
  EXPECT_EQ(countText(3'200'000'000), "3.20 G");
  EXPECT_EQ(countOf(1, "micro-batch", "es"), "1 micro-batch");
  EXPECT_EQ(countOf(2, "micro-batch", "es"), "2 micro-batches");
}

TEST(Text, Times) {
  EXPECT_EQ(timeText(0), "0 us");
  EXPECT_EQ(timeText(17930), "17.93 us");
  EXPECT_EQ(timeText(1.5e6), "1.500 ms");
  EXPECT_EQ(timeText(1.067e9), "1.067 s");
}

TEST(Text, Fractions) {
  EXPECT_EQ(percentText(0.1994), "19.9%");
  EXPECT_EQ(percentText(1), "100.0%");
}

TEST(Text, LongListsAreCut) {
  EXPECT_EQ(namesText({"a", "b"}), "a, b");
  EXPECT_EQ(namesText({"a", "b", "c", "d", "e", "f"}), "a, b, c, d, +2");
}

TEST(Text, Tables) {
  Table table({"name", ">size"});
  table.add({"a", "10"});
  table.add({"long name"});
  EXPECT_EQ(table.text(), "name       size\n"
                          "a            10\n"
                          "long name\n");
}

TEST(Text, Plan) {
  StepLine step{"fill_drain", 5, 2, 1, "", 0, 104700, 0.208};
  EXPECT_EQ(stepText(step), "fill_drain, 5 micro-batches of 2 samples a step; "
                            "predicted (uncalibrated): step 104.7 us, bubble "
                            "20.8%, 95.5 k samples/s\n");
  step.alone_ns = 156000;
  EXPECT_NE(stepText(step).find("samples/s, 1.49 times one device\n"),
            std::string::npos);
  step = {"sequential", 1, 1, 2, "EPYC", 1, 2'000'000, 0};
  EXPECT_EQ(stepText(step),
            "sequential, 1 micro-batch of 1 sample a step for each of 2 "
            "replicas; predicted for EPYC with 1 core a device: step 2.000 ms, "
            "bubble 0.0%, 1.00 k samples/s\n");
  EXPECT_EQ(stagesText({{"F0",
                         "cpu:0",
                         {"B0"},
                         {},
                         934000,
                         28467,
                         23040,
                         4096,
                         1 << 20,
                         17900}}),
            "stage  device  blocks  flops  parameters  activations     sends"
            "      peak      time\n"
            "F0     cpu:0   B0      934 k    27.8 KiB     22.5 KiB  4.00 KiB"
            "  1.00 MiB  17.90 us\n");
  // Modules have a column where the model says them.
  const std::string modules =
      stagesText({{"F0", "cpu:0", {"B0"}, {"embeddings", "layer.0"}},
                  {"F1", "cpu:1", {"B1"}, {"layer.1", "layer.2", "head"}}});
  EXPECT_NE(modules.find("blocks  modules "), std::string::npos) << modules;
  EXPECT_NE(modules.find("embeddings, layer.0"), std::string::npos);
  EXPECT_NE(modules.find("layer.1 to head"), std::string::npos);
  EXPECT_EQ(messagesText({}), "nothing is sent\n");
  EXPECT_EQ(messagesText({{"sum", "all_reduce along data", 8, -1, "", true},
                          {"x", "cpu:0 to cpu:1", 4, -1, ""}}),
            "what each device sends in a micro-batch:\n"
            "value  how             bytes  time  why\n"
            "x      cpu:0 to cpu:1    4 B\n"
            "once a step:\n"
            "value  how                    bytes  time  why\n"
            "sum    all_reduce along data    8 B\n");
  // Repeated layers are one line, unless their numbers make a difference.
  EXPECT_EQ(
      messagesText({{"h.0.fc1", "all_gather", 8, 1000, "'h.0.fc1' reads it"},
                    {"h.0.fc2", "all_gather", 16, 1000, "'h.0.fc2' reads it"},
                    {"h.1.fc1", "all_gather", 8, 1000, "'h.1.fc1' reads it"},
                    {"h.1.fc1", "reduce_scatter", 8, 1000, "sums"},
                    {"h.1.fc1", "reduce_scatter", 8, 1000, "sums"}}),
      "what each device sends in a micro-batch:\n"
      "value    how               bytes          time  why\n"
      "h.*.fc*  all_gather      2 x 8 B  2 x 1.000 us  'h.*.fc*' reads it\n"
      "h.0.fc2  all_gather         16 B      1.000 us  'h.0.fc2' reads it\n"
      "h.1.fc1  reduce_scatter  2 x 8 B  2 x 1.000 us  sums\n");
}

/// Two stages: what the first sends are channels 0 (forward) and 1 (back).
static std::vector<DrawnProgram> drawnPipeline(int64_t backward) {
  using enum ActionKind;
  DrawnProgram first{"cpu:0", {{"F0", 100}, {"B0", backward}, {"U0", 10}}, {}},
      last{"cpu:1", {{"F1", 200}, {"U1", 10}}, {}};
  for (int m = 0; m < 3; ++m) {
    for (auto [kind, subject] : {std::pair(recv, 0), {run, 0}, {release, 0}})
      last.actions.push_back({kind, m, subject});
    last.actions.push_back({send, m, 1});
  }
  last.actions.push_back({run, 2, 1});
  auto forward = [&](int m) {
    first.actions.push_back({run, m, 0});
    first.actions.push_back({send, m, 0});
  };
  forward(0);
  for (int m = 0; m < 3; ++m) {
    if (m < 2)
      forward(m + 1);
    first.actions.push_back({recv, m, 1});
    first.actions.push_back({run, m, 1});
  }
  first.actions.push_back({run, 2, 2});
  return {first, last};
}

TEST(Text, PictureOfAStep) {
  EXPECT_EQ(stepPicture(drawnPipeline(100)),
            "a step, 0.100 us a column (F forward, B backward, U update):\n"
            "cpu:0  F0F1  B0F2B1  B2U\n"
            "cpu:1    F0--F1--F2--U\n");
  // Longer units are longer.
  EXPECT_EQ(stepPicture(drawnPipeline(200)),
            "a step, 0.100 us a column (F forward, B backward, U update):\n"
            "cpu:0  F0F1  B0--F2B1--B2--U\n"
            "cpu:1    F0--F1--  F2--U\n");
  EXPECT_EQ(stepPicture({drawnPipeline(1).front()}), "");
  EXPECT_TRUE(isDrawn(8, 32));
  EXPECT_FALSE(isDrawn(1, 4));
  EXPECT_FALSE(isDrawn(64, 8));
}

TEST(Text, PictureOfLaterStages) {
  using enum ActionKind;
  DrawnProgram folded{"cpu:0", {{"F0", 5}, {"F0.1", 5}, {"F2", 10}}, {}},
      other{"cpu:1", {{"F1", 10}}, {}};
  // A unit of two parts is one; the device's second stage has small letters.
  folded.actions = {{run, 0, 0},  {start, 0, 0}, {finish, 0, 0}, {run, 0, 1},
                    {send, 0, 0}, {recv, 0, 1},  {run, 0, 2}};
  other.actions = {{recv, 0, 0}, {run, 0, 0}, {send, 0, 1}};
  EXPECT_EQ(stepPicture({folded, other}),
            "a step, 0.005 us a column (F forward; small: a later stage of the "
            "device):\n"
            "cpu:0  F0--    f0\n"
            "cpu:1      F0\n");
}

TEST(Text, PictureOfAStepThatIsLong) {
  DrawnProgram much{"cpu:0", {{"F0", 10}}, {}};
  for (int m = 0; m < 100; ++m)
    much.actions.push_back({ActionKind::run, m, 0});
  const std::string text = stepPicture({much, much});
  const std::string line = text.substr(text.find('\n') + 1);
  EXPECT_EQ(line.find('\n'), 160u);
  EXPECT_EQ(line.substr(157, 3), "...");
}

//===- TextTest.cpp - Numbers as both programs print them -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/PlanText.h"

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
  Table table({"name", "size"}, {false, true});
  table.add({"a", "10"});
  table.add({"long name"});
  EXPECT_EQ(table.text(), "name       size\n"
                          "a            10\n"
                          "long name\n");
}

TEST(Text, Plan) {
  StepLine step{"fill_drain", 5, 2, 1, "", 0, 104700, 0.208};
  EXPECT_EQ(stepText(step), "fill_drain, 5 micro-batches of 2 samples a step; "
                            "predicted: step 104.7 us, bubble 20.8%\n");
  step = {"sequential", 1, 1, 2, "EPYC", 1, 2'000'000, 0};
  EXPECT_EQ(stepText(step),
            "sequential, 1 micro-batch of 1 sample a step for each of 2 "
            "replicas; predicted for EPYC with 1 core a device: step 2.000 ms, "
            "bubble 0.0%\n");
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
}

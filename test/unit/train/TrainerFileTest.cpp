//===- TrainerFileTest.cpp - Where a training stands, as a file -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/io/Support.h"

#include "runtime/train/TrainerFile.h"

#include <cmath>

using namespace partita::runtime;
using namespace partita::runtime::train;
using namespace partita::runtime::testing;

namespace {

TrainerFile example() {
  TrainerFile file;
  file.progress = {
      120, ~uint64_t(0), 3, 512, {0xf3c21d9a5be871, 2, "{\"rate\":1}"}, {}};
  file.progress.metrics = {{"a \"quote\"", 0.1},
                           {"lost", NAN},
                           {"up", INFINITY},
                           {"down", -INFINITY}};
  file.files = {{"model.safetensors", {2672, ~uint64_t(0)}}};
  return file;
}

std::string text() { return *example().json(); }

/// The file with one thing replaced.
Expected<TrainerFile> changed(const std::string &from, const std::string &to) {
  std::string all = text();
  const size_t at = all.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << all;
  return TrainerFile::parse(all.replace(at, from.size(), to));
}

TEST(TrainerFile, keepsAll) {
  Expected<TrainerFile> read = TrainerFile::parse(text());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Progress &progress = read->progress;
  EXPECT_EQ(progress.step, 120);
  EXPECT_EQ(progress.seed, ~uint64_t(0));
  EXPECT_EQ(progress.epoch, 3);
  EXPECT_EQ(progress.sample, 512);
  EXPECT_EQ(progress.identity, (Identity{0xf3c21d9a5be871, 2}));
  EXPECT_EQ(progress.identity.setup_text, "{\"rate\":1}");
  EXPECT_EQ(progress.metrics.at("a \"quote\""), 0.1);
  EXPECT_TRUE(std::isnan(progress.metrics.at("lost")));
  EXPECT_EQ(progress.metrics.at("up"), INFINITY);
  EXPECT_EQ(progress.metrics.at("down"), -INFINITY);
  EXPECT_EQ(read->files, example().files);
  EXPECT_EQ(*read->json(), text());
}

TEST(TrainerFile, refusesOtherTexts) {
  expectError(TrainerFile::parse(""), "does not describe");
  expectError(TrainerFile::parse("[]"), "does not describe");
  expectError(TrainerFile::parse(std::string(100000, '[')),
              "does not describe");
  expectError(TrainerFile::parse(std::string(kMostTrainerBytes + 1, ' ')),
              "too large");
  expectError(changed("\"partita_checkpoint\": 1", "\"partita_checkpoint\": 2"),
              "another version");
  expectError(changed("\"step\": 120", "\"step\": -1"), "not as a training");
  expectError(changed("\"step\": 120", "\"step\": 1e3"), "not as a training");
  expectError(changed("\"epoch\": 3", "\"epoch\": 18446744073709551615"),
              "not as a training");
  expectError(changed("00f3c21d9a5be871", "00f3c21d9a5be87"),
              "not as a training");
  expectError(changed("\"nan\"", "\"much\""), "not as a training");
  expectError(changed("\"bytes\": 2672", "\"bytes\": null"),
              "not as a training");
}

TEST(TrainerFile, saysWhatDiffersOfSetups) {
  auto difference = [](const std::string &there, const std::string &here) {
    return describeDifference({1, 1, there}, {1, 2, here});
  };
  EXPECT_EQ(difference(R"({"rate":[0.1,1],"kind":"sgd"})",
                       R"({"rate":[0.2,1],"kind":"sgd"})"),
            "rate.0 is 0.1 there and 0.2 here");
  // How a person said it comes last.
  EXPECT_EQ(
      difference("{\"a\":1,\"said\":{\"k\":\"x\"}}\norder drawn",
                 "{\"b\":\"c\",\"said\":{\"k\":\"y\"}}\norder shuffled"),
      "a is 1 there and nothing here, b is nothing there and \"c\" here, order "
      "is drawn there and shuffled here");
  EXPECT_EQ(difference(R"({"said":{"k":"x"}})", R"({"said":{"k":"y"}})"),
            "said.k is \"x\" there and \"y\" here");
  EXPECT_EQ(difference(R"({"a":1,"b":1,"c":1,"d":1})", R"({"e":1})"),
            "a is 1 there and nothing here, b is 1 there and nothing here, c "
            "is 1 there and nothing here, and others differ");
  // Nobody knows.
  for (const std::string &other :
       {std::string(), std::string("{}"), std::string("7"), std::string("\n"),
        std::string(100000, '['), "{\"a\":" + std::string(100000, '[')})
    EXPECT_EQ(difference(other, R"({"a":1})"), "") << other.substr(0, 9);
}

TEST(TrainerFile, refusesToWriteWhatCannotBeRead) {
  TrainerFile file = example();
  file.progress.metrics["\xff"] = 0;
  expectError(file.json(), "not UTF-8");
  file = example();
  file.progress.sample = -1;
  expectError(file.json(), "negative");
}

} // namespace

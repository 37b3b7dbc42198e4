//===- InputCheckTest.cpp - Indices that are wrong before a step ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/InputCheck.h"

#include "test/unit/runtime/Trainings.h"

#include <gtest/gtest.h>

namespace partita::test {
namespace {

using namespace runtime;
using runtime::train::InputCheck;
using runtime::train::LossNames;

/// A plan of two micro-batches with two samples of three labels, and ids.
class InputCheckTest : public testing::Test {
protected:
  InputCheckTest() {
    spec.micro_batches = 2;
    spec.inputs = {{"x", abi::DType::f32, {2, 3}, -1},
                   {"label", abi::DType::i64, {2, 3}, -1},
                   {"ids", abi::DType::i32, {2}, -1}};
    spec.checks = {
        {"cross_entropy", "loss", "labels", "label", {2, 3}, {0}, {9}, 2},
        {"Gather", "embed", "indices", "ids", {2}, {-5}, {4}, 2}};
    labels.assign(12, 1);
    ids.assign(4, 0);
  }
  /// "micro-batch check row place value" of each.
  std::string find() {
    bytes = encode(spec);
    const abi::Plan &plan = *flatbuffers::GetRoot<abi::Plan>(bytes.data());
    LossNames loss;
    loss.target = "label";
    loss.ignoreIndex = -100;
    const InputCheck check(plan, {"x", "label", "ids"}, loss);
    const uint8_t *data[] = {
        nullptr, reinterpret_cast<const uint8_t *>(labels.data()),
        withIds ? reinterpret_cast<const uint8_t *>(ids.data()) : nullptr};
    std::string text;
    for (const BadIndex &bad : check.find(data))
      text += (text.empty() ? "" : "; ") + std::to_string(bad.micro_batch) +
              " " + std::to_string(bad.check) + " " + std::to_string(bad.row) +
              " " + std::to_string(bad.place) + " " + std::to_string(bad.value);
    return text;
  }

  PlanSpec spec;
  std::vector<uint8_t> bytes;
  std::vector<int64_t> labels;
  std::vector<int32_t> ids;
  bool withIds = true;
};

TEST_F(InputCheckTest, FindsTheFirstOfEachMicroBatch) {
  EXPECT_EQ(find(), "");
  labels[4] = 10;
  labels[5] = 11;
  labels[6] = -1;
  EXPECT_EQ(find(), "0 0 1 1 10; 1 0 0 0 -1");
  ids[1] = 5;
  EXPECT_EQ(find(), "0 0 1 1 10; 0 1 1 0 5; 1 0 0 0 -1");
  ids[1] = -5;
  ids[3] = -6;
  EXPECT_EQ(find(), "0 0 1 1 10; 1 0 0 0 -1; 1 1 1 0 -6");
}

TEST_F(InputCheckTest, IgnoredLabelsAreNotWrong) {
  labels[4] = -100;
  EXPECT_EQ(find(), "");
  // An index is not ignored.
  ids[0] = -100;
  EXPECT_EQ(find(), "0 1 0 0 -100");
}

TEST_F(InputCheckTest, LooksAtInputsAlone) {
  ids[0] = 100;
  withIds = false;
  EXPECT_EQ(find(), "");
  withIds = true;
  spec.checks[1].tensor = "others";
  EXPECT_EQ(find(), "");
  spec.checks[1].tensor = "ids";
  spec.checks[1].op = "SoftmaxCrossEntropyLoss";
  EXPECT_EQ(find(), "");
  spec.checks[1].op = "Gather";
  spec.checks[1].shape = {2, 1}; // of another tensor of that name
  EXPECT_EQ(find(), "");
  spec.checks[1].shape = {2};
  EXPECT_EQ(find(), "0 1 0 0 100");
}

TEST_F(InputCheckTest, RangesOfEachPlace) {
  spec.checks[0].low = {0, 0, -1};
  spec.checks[0].high = {9, 5, 2};
  labels[1] = 5;
  labels[2] = -1;
  labels[3] = 9;
  EXPECT_EQ(find(), "");
  labels[4] = 6;
  EXPECT_EQ(find(), "0 0 1 1 6");
}

} // namespace
} // namespace partita::test

//===- DirectPortsTest.cpp - Which slots may lie with the caller ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/DirectPorts.h"

#include "test/unit/runtime/Pipelines.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace partita::test {
namespace {

using namespace partita::runtime;

/// One device with three slots and one unit of one library call, dot(x, w) ->
/// y; `change` may add to it.
class DirectPorts : public testing::Test {
protected:
  DirectPorts() {
    plan.addDevice();
    for (int *slot : {&x, &w, &y})
      *slot = plan.addFrameSlot(0, {4, 4}, 2);
    dot.call = abi::CallKind::dot;
    dot.views = {plan.view(0, x), plan.view(0, w), plan.view(0, y)};
    add(abi::StepKind::load_input, x, 0);
    add(abi::StepKind::load_input, w, 1);
    add(abi::StepKind::run, -1, 0);
    add(abi::StepKind::store_output, y, 0);
  }

  void add(abi::StepKind kind, int slot, int subject) {
    plan.programs[0].steps.push_back({kind, 0, subject, slot});
  }

  std::map<int, DirectPort> find() {
    plan.programs[0].units = {{"F0", 0, {dot}}};
    bytes = PlanEncoder().encode(plan);
    return findDirectPorts(
        *flatbuffers::GetRoot<abi::Plan>(bytes.data())->programs()->Get(0));
  }

  PlanSpec plan;
  InstructionSpec dot;
  std::vector<uint8_t> bytes;
  int x, w, y;
};

TEST_F(DirectPorts, InputsAndOutputs) {
  auto found = find();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[x].kind, DirectPort::Kind::input);
  EXPECT_EQ(found[w].index, 1);
  EXPECT_EQ(found[y].kind, DirectPort::Kind::output);
}

TEST_F(DirectPorts, OfTheArenaToo) {
  plan.programs[0].slots[x] = {
      abi::Space::arena, 0, 64, abi::DType::f32, {4, 4}};
  EXPECT_EQ(find().size(), 3u);
}

TEST_F(DirectPorts, NotAnInputThatIsAnOutput) {
  add(abi::StepKind::store_output, x, 1);
  EXPECT_FALSE(find().count(x));
}

TEST_F(DirectPorts, NotOneOutputOfTwo) {
  add(abi::StepKind::store_output, y, 1);
  EXPECT_FALSE(find().count(y));
}

TEST_F(DirectPorts, NotWhatIsSentToo) {
  add(abi::StepKind::send, y, 0);
  EXPECT_FALSE(find().count(y));
}

TEST_F(DirectPorts, WhatIsReceivedAndReleased) {
  auto &steps = plan.programs[0].steps;
  steps[0] = {abi::StepKind::recv, 0, 7, x};
  EXPECT_FALSE(find().count(x));
  add(abi::StepKind::release, -1, 7);
  auto found = find();
  ASSERT_TRUE(found.count(x));
  EXPECT_EQ(found[x].kind, DirectPort::Kind::channel);
  EXPECT_EQ(found[x].index, 7);
  // Another value of the same slot that is not released.
  steps.push_back(steps[0]);
  steps.back().micro_batch = 1;
  EXPECT_FALSE(find().count(x));
}

TEST_F(DirectPorts, NotWhatACallAddsToInPlaceOfAnotherSlot) {
  PostOpSpec sum;
  sum.kind = abi::PostOpKind::sum;
  sum.before = w;
  dot.post_ops = {sum};
  auto found = find();
  EXPECT_FALSE(found.count(y));
  EXPECT_FALSE(found.count(w));
  EXPECT_TRUE(found.count(x));
  dot.post_ops[0].before = y;
  EXPECT_TRUE(find().count(y));
}

/// What is received where a call adds upon it has to come there: nothing else
/// reads it.
TEST_F(DirectPorts, NotWhatACallAddsToWhereTheResultLies) {
  auto &steps = plan.programs[0].steps;
  int received = plan.addSlot(0, {4, 4});
  plan.programs[0].slots[received] = plan.programs[0].slots[y];
  add(abi::StepKind::recv, received, 7);
  std::rotate(steps.begin(), steps.end() - 1, steps.end());
  add(abi::StepKind::release, -1, 7);
  EXPECT_TRUE(find().count(received));
  PostOpSpec sum;
  sum.kind = abi::PostOpKind::sum;
  sum.before = received;
  dot.post_ops = {sum};
  auto found = find();
  EXPECT_FALSE(found.count(received));
  EXPECT_FALSE(found.count(y));
  EXPECT_TRUE(found.count(x));
}

} // namespace
} // namespace partita::test

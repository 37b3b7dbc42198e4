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
    add(abi::ActionKind::load_input, x, 0);
    add(abi::ActionKind::load_input, w, 1);
    add(abi::ActionKind::run, -1, 0);
    add(abi::ActionKind::store_output, y, 0);
  }

  void add(abi::ActionKind kind, int slot, int subject) {
    plan.programs[0].actions.push_back({kind, 0, subject, slot});
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
  add(abi::ActionKind::store_output, x, 1);
  EXPECT_FALSE(find().count(x));
}

TEST_F(DirectPorts, NotOneOutputOfTwo) {
  add(abi::ActionKind::store_output, y, 1);
  EXPECT_FALSE(find().count(y));
}

TEST_F(DirectPorts, NotWhatIsSentToo) {
  add(abi::ActionKind::send, y, 0);
  EXPECT_FALSE(find().count(y));
}

TEST_F(DirectPorts, WhatIsReceivedAndReleased) {
  auto &actions = plan.programs[0].actions;
  actions[0] = {abi::ActionKind::recv, 0, 7, x};
  EXPECT_FALSE(find().count(x));
  add(abi::ActionKind::release, -1, 7);
  auto found = find();
  ASSERT_TRUE(found.count(x));
  EXPECT_EQ(found[x].kind, DirectPort::Kind::channel);
  EXPECT_EQ(found[x].index, 7);
  // Another value of the same slot that is not released.
  actions.push_back(actions[0]);
  actions.back().micro_batch = 1;
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
  auto &actions = plan.programs[0].actions;
  int received = plan.addSlot(0, {4, 4});
  plan.programs[0].slots[received] = plan.programs[0].slots[y];
  add(abi::ActionKind::recv, received, 7);
  std::rotate(actions.begin(), actions.end() - 1, actions.end());
  add(abi::ActionKind::release, -1, 7);
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

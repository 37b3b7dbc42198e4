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
      *slot = plan.addSlot(0, {4, 4});
    dot.call = abi::CallKind::dot;
    dot.views = {plan.view(0, x), plan.view(0, w), plan.view(0, y)};
    add(abi::StepKind::load_input, x, 0);
    add(abi::StepKind::load_input, w, 1);
    plan.devices[0].program.push_back(makeStep(abi::StepKind::run, 0));
    plan.devices[0].program.back().unit = 0;
    add(abi::StepKind::store_output, y, 0);
  }

  void add(abi::StepKind kind, int slot, int io) {
    plan.devices[0].program.push_back(makeStep(kind, 0));
    plan.devices[0].program.back().slot = slot;
    plan.devices[0].program.back().io = io;
  }

  std::map<int, DirectPort> find() {
    plan.devices[0].units = {{"F0", 0, 0, {dot}}};
    bytes = PlanEncoder().encode(plan);
    return findDirectPorts(
        *flatbuffers::GetRoot<abi::Plan>(bytes.data())->devices()->Get(0));
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

TEST_F(DirectPorts, NotAnInputThatIsAnOutput) {
  add(abi::StepKind::store_output, x, 1);
  EXPECT_FALSE(find().count(x));
}

TEST_F(DirectPorts, NotOneOutputOfTwo) {
  add(abi::StepKind::store_output, y, 1);
  EXPECT_FALSE(find().count(y));
}

TEST_F(DirectPorts, NotWhatIsSentToo) {
  add(abi::StepKind::send, y, -1);
  EXPECT_FALSE(find().count(y));
}

TEST_F(DirectPorts, WhatIsReceivedAndReleased) {
  auto &program = plan.devices[0].program;
  program[0].kind = abi::StepKind::recv;
  program[0].channel = 7;
  EXPECT_FALSE(find().count(x));
  add(abi::StepKind::release, -1, -1);
  program.back().channel = 7;
  auto found = find();
  ASSERT_TRUE(found.count(x));
  EXPECT_EQ(found[x].kind, DirectPort::Kind::channel);
  EXPECT_EQ(found[x].index, 7);
  // Another value of the same slot that is not released.
  program.push_back(program[0]);
  program.back().micro_batch = 1;
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
  auto &program = plan.devices[0].program;
  int received = plan.addSlot(0, {4, 4});
  plan.devices[0].slots[received].offset = plan.devices[0].slots[y].offset;
  add(abi::StepKind::recv, received, -1);
  program.back().channel = 7;
  std::rotate(program.begin(), program.end() - 1, program.end());
  add(abi::StepKind::release, -1, -1);
  program.back().channel = 7;
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

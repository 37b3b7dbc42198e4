//===- WaitingTest.cpp - Waiting and moving, told apart -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Events with times made by hand, of plans of which nothing is run.
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/Waiting.h"
#include "tools/partita-run/show/ProfileTable.h"
#include "tools/partita-run/show/Stages.h"

#include "runtime/base/Programs.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace partita;
using namespace partita::run;
using namespace partita::test;
using partita::abi::ActionKind;
using partita::abi::DType;

namespace {

UnitSpec copying(const char *name, int stage, int from, int to) {
  InstructionSpec copy;
  copy.type = partita::abi::Work::Copy;
  copy.label = "/copy";
  copy.operands = {from, to};
  return {name, stage, {copy}};
}

/// A device copies its input and sends it to another, which copies it to the
/// output.
PlanSpec twoDevices() {
  PlanSpec plan;
  plan.inputs = {{"x", DType::f32, {4}}};
  plan.outputs = {{"y", DType::f32, {4}}};
  plan.channels = {{"sent", 0, 1, 16}};
  for (int d = 0; d < 2; ++d) {
    plan.addDevice();
    const int in = plan.addFrameSlot(d, {4}, 1),
              out = plan.addFrameSlot(d, {4}, 1);
    ProgramSpec &program = plan.programs[size_t(d)];
    program.units = {copying(d ? "F1" : "F0", d, in, out)};
    if (d == 0)
      program.actions = {{ActionKind::load_input, 0, 0, in},
                         {ActionKind::run, 0, 0},
                         {ActionKind::send, 0, 0, out},
                         {ActionKind::wait, 0, 0}};
    else
      program.actions = {{ActionKind::recv, 0, 0, in},
                         {ActionKind::run, 0, 0},
                         {ActionKind::store_output, 0, 0, out}};
  }
  return plan;
}

/// Two devices compute a part each, and then all gather both.
PlanSpec gathering() {
  PlanSpec plan;
  plan.inputs = {{"x", DType::f32, {8}}};
  plan.outputs = {{"y", DType::f32, {8}}};
  plan.addDevice();
  const int in = plan.addFrameSlot(0, {8}, 1), part = plan.addSlot(0, {4}),
            out = plan.addFrameSlot(0, {8}, 1);
  InstructionSpec slice;
  slice.type = partita::abi::Work::Slice;
  slice.operands = {in, part};
  slice.part = 4;
  slice.rows = 1;
  slice.axes = {0};
  plan.programs[0].units = {{"F0", 0, {slice}}};
  CollectiveSpec gather;
  gather.kind = partita::abi::CollectiveKind::all_gather;
  gather.rows = 1;
  gather.part = 4;
  gather.axes = {0};
  plan.collectives = {gather};
  plan.programs[0].actions = {{ActionKind::load_input, 0, 0, in},
                              {ActionKind::run, 0, 0},
                              {ActionKind::start, 0, 0, part},
                              {ActionKind::finish, 0, 0, out},
                              {ActionKind::store_output, 0, 0, out}};
  plan.addAxes({{"tensor", 2}});
  return plan;
}

class Waiting : public ::testing::Test {
protected:
  void open(const PlanSpec &plan) {
    path = temporary("waiting.partita");
    writeArtifact(path, plan);
    auto artifact = runtime::Artifact::open(path);
    ASSERT_TRUE(artifact.ok()) << artifact.status().message();
    model.emplace(*artifact);
  }
  void TearDown() override { std::remove(path.c_str()); }

  /// Action `action` of a device's program, in microseconds.
  static Profile::Event event(int device, int action, int begin, int end,
                              int instruction = -1) {
    return {{device, 0, action, instruction, begin * 1000, end * 1000}, 0};
  }

  std::string path;
  std::optional<Model> model;
};

TEST_F(Waiting, aReceiveWaitsUntilItIsSent) {
  open(twoDevices());
  using Waits = std::vector<int64_t>;
  // The send ends at 50: of 10 to 60, the first 40 are waiting.
  EXPECT_EQ(findWaits(*model, {event(1, 0, 10, 60), event(0, 2, 45, 50)}),
            (Waits{40000, 0}));
  // It was sent before.
  EXPECT_EQ(findWaits(*model, {event(1, 0, 55, 60), event(0, 2, 45, 50)}),
            (Waits{0, 0}));
  // A clock that is a little off makes no time that is negative.
  EXPECT_EQ(findWaits(*model, {event(1, 0, 10, 49), event(0, 2, 45, 50)}),
            (Waits{39000, 0}));
  // Nobody knows when it was sent.
  EXPECT_EQ(findWaits(*model, {event(1, 0, 10, 60)}), Waits{0});
  // To wait for the receiver is nothing else; to compute is no waiting.
  EXPECT_EQ(findWaits(*model, {event(0, 3, 50, 58), event(0, 1, 5, 45),
                               event(0, 1, 6, 44, 0)}),
            (Waits{8000, 0, 0}));
}

TEST_F(Waiting, aCollectiveWaitsForTheLast) {
  open(gathering());
  // Device 1 comes at 30.
  EXPECT_EQ(findWaits(*model, {event(0, 2, 9, 10), event(0, 3, 10, 34),
                               event(1, 2, 28, 30), event(1, 3, 30, 35)}),
            (std::vector<int64_t>{0, 20000, 0, 0}));
}

TEST_F(Waiting, theTableAndTheTraceTellThemApart) {
  open(twoDevices());
  const std::vector<Profile::Event> events = {
      event(0, 0, 0, 1),    event(0, 1, 1, 45),    event(0, 1, 2, 44, 0),
      event(0, 2, 45, 50),  event(0, 3, 50, 62),   event(1, 0, 0, 60),
      event(1, 1, 60, 100), event(1, 1, 60, 98, 0)};
  const ProfileTable table(*model, events, {100000});
  ASSERT_EQ(table.devices.size(), 2u);
  EXPECT_EQ(table.devices[0].waiting, 12000);
  EXPECT_EQ(table.devices[0].moving, 5000);
  EXPECT_EQ(table.devices[1].waiting, 50000);
  EXPECT_EQ(table.devices[1].moving, 10000);
  ASSERT_EQ(table.transfers.size(), 1u);
  EXPECT_EQ(table.transfers[0].value, "sent");
  EXPECT_EQ(table.transfers[0].from, 0);
  EXPECT_EQ(table.transfers[0].bytes, 16);
  EXPECT_EQ(table.transfers[0].waiting, 50000);
  EXPECT_EQ(table.transfers[0].moving, 10000);
  // Sums over both devices, by kind, the largest first.
  std::vector<std::pair<std::string, double>> kinds;
  for (const ProfileTable::Kind &kind : table.kinds)
    kinds.push_back({kind.name, kind.ns});
  EXPECT_EQ(kinds, (std::vector<std::pair<std::string, double>>{
                       {"copy", 80000},
                       {"waiting", 62000},
                       {"moving bytes", 15000},
                       {"inputs, outputs", 1000}}));
  EXPECT_NE(table.text(*model, /*top=*/60).find("kind of work"),
            std::string::npos);

  const auto trace = nlohmann::json::parse(traceText(*model, events));
  double waited = -1, moved = -1;
  for (const auto &each : trace["traceEvents"]) {
    const std::string name = each.value("name", "");
    if (name == "wait for cpu:0 to send sent #0") {
      EXPECT_EQ(each["cat"], "wait");
      waited = each["dur"];
    }
    if (name == "receive sent #0 from cpu:0") {
      EXPECT_EQ(each["args"]["waited_us"], 50);
      moved = each["dur"];
    }
  }
  EXPECT_EQ(waited, 50);
  EXPECT_EQ(moved, 10);
}

TEST(StageRow, modulesAreAFewOrFromTo) {
  EXPECT_EQ(partita::abi::modulesText({}), "");
  EXPECT_EQ(partita::abi::modulesText({"a"}), "a");
  EXPECT_EQ(partita::abi::modulesText({"embeddings", "layer.0", "layer.1"}),
            "embeddings to layer.1");
}

} // namespace

//===- Trainings.h - A model that learns, made by hand ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model y = w * x of one number. A step makes w the sum of y over its
// micro-batches, and that is its loss, too. The library computes all of it, so
// there are no kernels.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_TRAININGS_H
#define PARTITA_TEST_UNIT_RUNTIME_TRAININGS_H

#include "test/unit/runtime/PlanBuilder.h"

namespace partita::test {

/// The slots, units and ports of trainPlan by name.
struct TrainPlan : PlanSpec {
  int rate, zero, x, w, sum; ///< slots
  static constexpr int kStart = 0, kAdd = 1, kUpdate = 2;

  ProgramSpec &program() { return programs[0]; }
  SlotSpec &at(int slot) { return programs[0].slots[slot]; }
  std::vector<ActionSpec> &actions() { return programs[0].actions; }
};

inline constexpr char kTraining[] =
    R"({"loss": "sum:y", "optimizer": "sgd", "learning_rate": [0.5],)"
    R"( "weight_decay": [0]})";

/// y = x * w.
inline InstructionSpec dotOf(const PlanSpec &plan, int x, int w, int y) {
  InstructionSpec dot;
  dot.label = "dot";
  dot.views = {plan.view(0, x), plan.view(0, w), plan.view(0, y)};
  return dot;
}

inline InstructionSpec copyOf(int from, int to) {
  InstructionSpec copy;
  copy.type = abi::Work::Copy;
  copy.operands = {from, to};
  return copy;
}

inline TrainPlan trainPlan(int micro_batches = 3, float initial = 0.5f) {
  TrainPlan plan;
  plan.micro_batches = micro_batches;
  plan.full_steps = true;
  plan.entry = "train";
  plan.training = kTraining;
  plan.inputs = {{"x", abi::DType::f32, {1, 1}, -1},
                 {"learning_rate", abi::DType::f64, {1}, -1, true}};
  plan.outputs = {{"loss", abi::DType::f32, {1, 1}, -1, true}};
  plan.addDevice();
  plan.addWeight(0, {1, 1}, {initial}); // the state's
  plan.zero = plan.addWeight(0, {1, 1}, {0});
  plan.x = plan.addSlot(0, {1, 1});
  plan.sum = plan.addSlot(0, {1, 1});
  plan.rate = plan.addSlot(0, {2});
  plan.w = plan.addState(0, "w", {1, 1}, 0);
  plan.at(plan.sum).span = abi::Span::sum;
  plan.at(plan.rate).span = abi::Span::step;
  plan.at(plan.rate).dtype = abi::DType::f64;
  plan.at(plan.rate).shape = {1};
  InstructionSpec add = dotOf(plan, plan.x, plan.w, plan.sum);
  add.post_ops.emplace_back().kind = abi::PostOpKind::sum;
  plan.program().units = {{"P0", 0, {copyOf(plan.zero, plan.sum)}},
                          {"F0", 0, {add}},
                          {"U0", 0, {copyOf(plan.sum, plan.w)}}};
  using Kind = abi::ActionKind;
  plan.actions() = {{Kind::load_input, 0, 1, plan.rate},
                    {Kind::run, 0, TrainPlan::kStart}};
  for (int m = 0; m < micro_batches; ++m) {
    plan.actions().push_back({Kind::load_input, m, 0, plan.x});
    plan.actions().push_back({Kind::run, m, TrainPlan::kAdd});
  }
  plan.actions().push_back({Kind::run, micro_batches - 1, TrainPlan::kUpdate});
  plan.actions().push_back(
      {Kind::store_output, micro_batches - 1, 0, plan.sum});
  return plan;
}

/// The same model: loss.sum is y.
inline PlanSpec evalPlan(float initial = 0.5f, int micro_batches = 1) {
  PlanSpec plan;
  plan.micro_batches = micro_batches;
  plan.entry = "eval";
  plan.inputs = {{"x", abi::DType::f32, {1, 1}, -1}};
  plan.outputs = {{"loss.sum", abi::DType::f32, {1, 1}, -1}};
  plan.addDevice();
  plan.addWeight(0, {1, 1}, {initial});
  plan.addWeight(0, {1, 1}, {0});
  const int x = plan.addSlot(0, {1, 1}), y = plan.addSlot(0, {1, 1}),
            w = plan.addState(0, "w", {1, 1}, 0);
  plan.programs[0].units = {{"F0", 0, {dotOf(plan, x, w, y)}}};
  for (int m = 0; m < micro_batches; ++m)
    for (const ActionSpec &action :
         {ActionSpec{abi::ActionKind::load_input, m, 0, x},
          ActionSpec{abi::ActionKind::run, m, 0},
          ActionSpec{abi::ActionKind::store_output, m, 0, y}})
      plan.programs[0].actions.push_back(action);
  return plan;
}

inline std::vector<uint8_t> trainingBytes(const PlanSpec &train,
                                          const PlanSpec &eval) {
  return artifactOfPlans({encode(train), encode(eval)}, train.weight_bytes, {});
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_TRAININGS_H

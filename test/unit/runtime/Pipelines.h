//===- Pipelines.h - Pipelines of small kernels, made by hand ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_PIPELINES_H
#define PARTITA_TEST_UNIT_RUNTIME_PIPELINES_H

#include "test/unit/runtime/PlanBuilder.h"

#include <algorithm>

namespace partita::test {

/// The object of Kernels.c, for both CPU levels.
inline std::vector<ObjectSpec> testObjects() {
  std::vector<uint8_t> bytes = readFile(PARTITA_TEST_KERNELS);
  return {{abi::CpuLevel::x86_64_v3, bytes}, {abi::CpuLevel::x86_64_v4, bytes}};
}

inline StepSpec makeStep(abi::StepKind kind, int micro_batch) {
  StepSpec step;
  step.kind = kind;
  step.micro_batch = micro_batch;
  return step;
}

/// y = 2^devices * x, for `count` floats a micro-batch: each device doubles,
/// and has two slots in turn for what it receives and for what it sends. With
/// `release`, receivers may read what they receive where it is.
inline PlanSpec doublingPipeline(int devices, int micro_batches,
                                 int64_t count = 16, bool release = false) {
  PlanSpec plan;
  plan.micro_batches = micro_batches;
  plan.kernels = {"twice"};
  plan.inputs = {{"x", abi::DType::f32, {count}}};
  plan.outputs = {{"y", abi::DType::f32, {count}}};
  for (int d = 0; d < devices; ++d) {
    plan.addDevice();
    int in[2], out[2];
    for (int *slot : {&in[0], &in[1], &out[0], &out[1]})
      *slot = plan.addSlot(d, {count});
    InstructionSpec twice;
    twice.type = abi::Work::Dispatch;
    twice.label = "double" + std::to_string(d);
    twice.operands = {plan.addArgument(d, {count}, 0),
                      plan.addArgument(d, {count}, 1)};
    twice.extent = count;
    plan.devices[d].units.push_back({"F" + std::to_string(d), d, 2, {twice}});
    if (d + 1 < devices)
      plan.channels.push_back(
          {"x" + std::to_string(d + 1), d, d + 1, count * 4});

    auto &program = plan.devices[d].program;
    auto add = [&](abi::StepKind kind, int m) -> StepSpec & {
      program.push_back(makeStep(kind, m));
      return program.back();
    };
    for (int m = 0; m < micro_batches; ++m) {
      StepSpec &first =
          add(d == 0 ? abi::StepKind::load_input : abi::StepKind::recv, m);
      first.slot = in[m % 2];
      first.channel = d - 1;
      first.peer = d - 1;
      first.io = d == 0 ? 0 : -1;
      if (d + 1 < devices && m >= 2)
        add(abi::StepKind::wait, m - 2).channel = d;
      StepSpec &run = add(abi::StepKind::run, m);
      run.unit = 0;
      run.bindings = {in[m % 2], out[m % 2]};
      if (release && d > 0)
        add(abi::StepKind::release, m).channel = d - 1;
      StepSpec &last = add(d + 1 < devices ? abi::StepKind::send
                                           : abi::StepKind::store_output,
                           m);
      last.slot = out[m % 2];
      if (d + 1 < devices) {
        last.channel = d;
        last.peer = d + 1;
      } else {
        last.io = 0;
      }
    }
    if (d + 1 < devices)
      for (int m = std::max(0, micro_batches - 2); m < micro_batches; ++m)
        add(abi::StepKind::wait, m).channel = d;
  }
  return plan;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_PIPELINES_H

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
#include <cstdlib>

namespace partita::test {

/// Where a file that was made with the tests is now: in the folder
/// PARTITA_TEST_FILES if that is set, for tests that run on another machine.
inline std::string testFile(const std::string &built) {
  const char *folder = std::getenv("PARTITA_TEST_FILES");
  return folder ? folder + built.substr(built.rfind('/')) : built;
}

/// The object of Kernels.c, for both CPU levels, and the same kernels as PTX.
inline std::vector<ObjectSpec> testObjects() {
  const std::vector<uint8_t> bytes = readFile(testFile(PARTITA_TEST_KERNELS)),
                             ptx = readFile(testFile(PARTITA_TEST_PTX));
  return {{abi::CpuLevel::x86_64_v3, bytes},
          {abi::CpuLevel::x86_64_v4, bytes},
          ptxSection({ptx.begin(), ptx.end()}, abi::GpuArchitecture::sm_80)};
}

/// The parameters of a doubling pipeline.
struct PipelineSpec {
  int devices = 1, micro_batches = 1;
  int64_t count = 16; ///< floats of a micro-batch
  /// Whether receivers may read received values in the sender's memory.
  bool release = false;
  /// Copies of the frames for received and for sent values; at most as many as
  /// micro-batches.
  int copies = 2;
  /// The number of micro-batches that are received before the first of them is
  /// computed; fewer than `copies`.
  int ahead = 0;
  /// More devices for each program. Each of `shards` devices computes its part
  /// of every micro-batch, in rows of 4 floats per shard. Then all gather the
  /// parts.
  int replicas = 1, shards = 1;
};

/// y = 2^devices * x: each device doubles its input. A program has one unit.
/// Slot 0 is for received values, slot 1 for sent ones.
inline PlanSpec doublingPipeline(const PipelineSpec &spec) {
  const int copies = std::min(spec.copies, spec.micro_batches);
  PlanSpec plan;
  plan.micro_batches = spec.micro_batches;
  plan.kernels = {"twice"};
  plan.inputs = {{"x", abi::DType::f32, {spec.count}}};
  plan.outputs = {{"y", abi::DType::f32, {spec.count}}};
  for (int d = 0; d < spec.devices; ++d) {
    plan.addDevice();
    const int in = plan.addFrameSlot(d, {spec.count}, copies),
              out = plan.addFrameSlot(d, {spec.count}, copies);
    InstructionSpec twice;
    twice.type = abi::Work::Dispatch;
    twice.label = "double" + std::to_string(d);
    twice.operands = {in, out};
    twice.extent = spec.count / spec.shards;
    UnitSpec unit{"F" + std::to_string(d), d, {twice}};
    int doubled = -1;
    if (spec.shards > 1) {
      const int part = plan.addSlot(d, {twice.extent});
      doubled = plan.addSlot(d, {twice.extent});
      InstructionSpec slice;
      slice.type = abi::Work::Slice;
      slice.operands = {in, part};
      slice.part = 4;
      slice.rows = twice.extent / slice.part;
      slice.axes = {1};
      unit.instructions[0].operands = {part, doubled};
      unit.instructions.insert(unit.instructions.begin(), slice);
      CollectiveSpec gather;
      gather.program = d;
      gather.kind = abi::CollectiveKind::all_gather;
      gather.rows = slice.rows;
      gather.part = slice.part;
      gather.axes = {1};
      plan.collectives.push_back(gather);
    }
    plan.programs[d].units.push_back(unit);
    const bool first = d == 0, last = d + 1 == spec.devices;
    if (!last)
      plan.channels.push_back(
          {"x" + std::to_string(d + 1), d, d + 1, spec.count * 4});

    auto &actions = plan.programs[d].actions;
    auto compute = [&](int m) {
      if (!last && m >= copies)
        actions.push_back({abi::ActionKind::wait, m - copies, d});
      actions.push_back({abi::ActionKind::run, m, 0});
      if (spec.shards > 1) {
        actions.push_back({abi::ActionKind::start, m, d, doubled});
        actions.push_back({abi::ActionKind::finish, m, d, out});
      }
      if (spec.release && !first)
        actions.push_back({abi::ActionKind::release, m, d - 1});
      if (last)
        actions.push_back({abi::ActionKind::store_output, m, 0, out});
      else
        actions.push_back({abi::ActionKind::send, m, d, out});
    };
    for (int m = 0; m < spec.micro_batches + spec.ahead; ++m) {
      if (m < spec.micro_batches && first)
        actions.push_back({abi::ActionKind::load_input, m, 0, in});
      else if (m < spec.micro_batches)
        actions.push_back({abi::ActionKind::recv, m, d - 1, in});
      if (m >= spec.ahead)
        compute(m - spec.ahead);
    }
    for (int m = spec.micro_batches - copies; !last && m < spec.micro_batches;
         ++m)
      actions.push_back({abi::ActionKind::wait, m, d});
  }
  if (spec.replicas > 1 || spec.shards > 1)
    plan.addAxes({{"data", spec.replicas}, {"tensor", spec.shards}});
  return plan;
}

inline PlanSpec doublingPipeline(int devices, int micro_batches,
                                 int64_t count = 16, bool release = false) {
  return doublingPipeline({devices, micro_batches, count, release});
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_PIPELINES_H

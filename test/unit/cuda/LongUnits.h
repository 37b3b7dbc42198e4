//===- LongUnits.h - Pipelines of units of several kinds of work *- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_CUDA_LONGUNITS_H
#define PARTITA_TEST_UNIT_CUDA_LONGUNITS_H

#include "test/unit/cuda/Loaded.h"

namespace partita::test {

/// Pipelines whose units have a kernel, a copy, a product and a kernel. Values
/// go through frames of different numbers of copies: each device multiplies by
/// 4, and turns 4 rows of 4 around.
inline PlanSpec longUnits(int devices, int micro_batches, int copies, int inner,
                          bool release = false) {
  PlanSpec plan = doublingPipeline({.devices = devices,
                                    .micro_batches = micro_batches,
                                    .release = release,
                                    .copies = copies});
  for (int d = 0; d < devices; ++d) {
    const int doubled = plan.addSlot(d, {4, 4}),
              copied = plan.addFrameSlot(d, {4, 4}, inner),
              turned = plan.addSlot(d, {4, 4}),
              order = plan.addWeight(
                  d, {4, 4}, {0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0});
    std::vector<InstructionSpec> &unit = plan.programs[d].units[0].instructions;
    InstructionSpec first = unit[0], copy, dot, last = unit[0];
    first.operands[1] = doubled;
    copy.type = abi::Work::Copy;
    copy.operands = {doubled, copied};
    dot.label = "turn" + std::to_string(d);
    dot.views = {plan.view(d, order), plan.view(d, copied),
                 plan.view(d, turned)};
    last.operands[0] = turned;
    unit = {first, copy, dot, last};
  }
  return onGpus(plan);
}

/// What `devices` of them make of x.
inline std::vector<float> expectedOf(const std::vector<float> &x, int devices) {
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t row = i % 16 / 4;
    y[devices % 2 ? i - 4 * row + 4 * (3 - row) : i] =
        x[i] * static_cast<float>(1 << 2 * devices);
  }
  return y;
}

inline std::vector<float> countingFrom(float first, size_t count) {
  std::vector<float> values(count);
  for (float &value : values)
    value = first++;
  return values;
}

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_CUDA_LONGUNITS_H

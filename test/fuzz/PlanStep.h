//===- PlanStep.h - A step of a plan that may be wrong ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_PLANSTEP_H
#define PARTITA_TEST_FUZZ_PLANSTEP_H

#include "test/fuzz/Target.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <vector>

namespace partita::fuzz {

/// A plan may ask for as much memory and time as it likes; a test may not.
inline constexpr int64_t kMostMemory = 64 << 20;
inline constexpr int64_t kMostThreads = 8;

/// Whether a test can load the plan, and run a step of it.
inline bool small(const abi::Plan &plan) {
  int64_t bytes = 0;
  for (const abi::Program *program : *plan.programs())
    bytes = std::min(bytes + program->arena_bytes() + program->constant_bytes(),
                     int64_t(1) << 60);
  for (int64_t i = 0; i < runtime::length(plan.states()); ++i)
    bytes = std::min(bytes + plan.states()->Get(unsigned(i))->bytes(),
                     int64_t(1) << 60);
  for (const auto *ports : {plan.inputs(), plan.outputs()})
    for (int64_t i = 0; i < runtime::length(ports); ++i) {
      const abi::Port &port = *ports->Get(static_cast<unsigned>(i));
      int64_t more = runtime::elementCount(port.shape()) *
                     runtime::elementBytes(port.dtype());
      if (more > kMostMemory)
        return false;
      bytes += more * plan.micro_batches();
    }
  return bytes <= kMostMemory &&
         runtime::length(plan.devices()) <= kMostThreads;
}

/// Runs a step of the plan on zeros. It must not wait for ever.
inline void runStep(runtime::Session &session, const abi::Plan &plan) {
  std::vector<std::vector<uint8_t>> storage;
  runtime::StepBinding binding;
  binding.micro_batches = plan.micro_batches();
  auto room = [&](const abi::Port &port) {
    storage.emplace_back(static_cast<size_t>(
        runtime::elementCount(port.shape()) *
        runtime::elementBytes(port.dtype()) * plan.micro_batches()));
    return storage.back().data();
  };
  for (int64_t i = 0; i < runtime::length(plan.inputs()); ++i)
    binding.inputs.push_back(room(*plan.inputs()->Get(unsigned(i))));
  for (int64_t i = 0; i < runtime::length(plan.outputs()); ++i)
    binding.outputs.push_back(room(*plan.outputs()->Get(unsigned(i))));
  runtime::Status status = session.run(binding);
  require(status.ok() || status.message().find("deadline") == std::string::npos,
          "a plan that was proved does not wait for ever");
}

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_PLANSTEP_H

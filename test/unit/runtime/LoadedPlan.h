//===- LoadedPlan.h - A session with buffers for a whole step ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_RUNTIME_LOADEDPLAN_H
#define PARTITA_TEST_UNIT_RUNTIME_LOADEDPLAN_H

#include "runtime/artifact/Artifact.h"
#include "runtime/session/Session.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <gtest/gtest.h>

namespace partita::test {

/// A plan as an artifact, opened and loaded, with all inputs 1.
struct LoadedPlan {
  LoadedPlan(const PlanSpec &plan, const runtime::SessionOptions &options) {
    std::string path = temporary("loaded.partita");
    writeArtifact(path, plan, testObjects());
    auto artifact = runtime::Artifact::open(path);
    ::unlink(path.c_str());
    EXPECT_TRUE(artifact.ok()) << artifact.status().message();
    if (!artifact.ok())
      return;
    auto made = createSession(*artifact, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    if (!made.ok())
      return;
    session = std::move(*made);
    binding.micro_batches = plan.micro_batches;
    auto buffer = [&](const PortSpec &port) {
      buffers.emplace_back(product(port.shape) * plan.micro_batches, 1.0f);
      return reinterpret_cast<uint8_t *>(buffers.back().data());
    };
    for (const PortSpec &port : plan.inputs)
      binding.inputs.push_back(buffer(port));
    for (const PortSpec &port : plan.outputs)
      binding.outputs.push_back(buffer(port));
  }

  /// Whether all of `steps` steps succeed.
  bool run(int steps) {
    bool ok = true;
    for (int step = 0; step < steps; ++step)
      ok &= session->run(binding).ok();
    return ok;
  }

  std::unique_ptr<runtime::Session> session; ///< null if loading failed
  std::vector<std::vector<float>> buffers;
  runtime::StepBinding binding;
};

} // namespace partita::test

#endif // PARTITA_TEST_UNIT_RUNTIME_LOADEDPLAN_H

//===- PlanTarget.cpp - Fuzzes the plan verifier and the session ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are a plan. It is put into an artifact with right hashes, weights
// that are all zero, and kernels of the names in the corpus that do nothing (no
// verifier can vouch for machine code). What the verifier lets pass is loaded
// and runs a step.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/PlanMutator.h"
#include "test/fuzz/Target.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/session/Session.h"

using namespace partita;
using runtime::length;

namespace {

constexpr size_t kWeightBytes = 1 << 17;
/// A plan may ask for as much memory and time as it likes; a test may not.
constexpr int64_t kMostMemory = 64 << 20;
constexpr int64_t kMostThreads = 8;

bool small(const abi::Plan &plan) {
  int64_t bytes = 0;
  for (const abi::Program *program : *plan.programs())
    bytes = std::min(bytes + program->arena_bytes() + program->constant_bytes(),
                     int64_t(1) << 60);
  for (const auto *ports : {plan.inputs(), plan.outputs()})
    for (int64_t i = 0; i < length(ports); ++i) {
      const abi::Port &port = *ports->Get(static_cast<unsigned>(i));
      int64_t more = runtime::elementCount(port.shape()) *
                     runtime::elementBytes(port.dtype());
      if (more > kMostMemory)
        return false;
      bytes += more * plan.micro_batches();
    }
  return bytes <= kMostMemory && length(plan.devices()) <= kMostThreads;
}

void runStep(runtime::Session &session, const abi::Plan &plan) {
  std::vector<std::vector<uint8_t>> storage;
  runtime::StepBinding binding;
  binding.micro_batches = plan.micro_batches();
  auto room = [&](const abi::Port &port) {
    storage.emplace_back(static_cast<size_t>(
        runtime::elementCount(port.shape()) *
        runtime::elementBytes(port.dtype()) * plan.micro_batches()));
    return storage.back().data();
  };
  for (int64_t i = 0; i < length(plan.inputs()); ++i)
    binding.inputs.push_back(room(*plan.inputs()->Get(unsigned(i))));
  for (int64_t i = 0; i < length(plan.outputs()); ++i)
    binding.outputs.push_back(room(*plan.outputs()->Get(unsigned(i))));
  runtime::Status status = session.run(binding);
  fuzz::require(status.ok() ||
                    status.message().find("deadline") == std::string::npos,
                "a plan that was proved does not wait for ever");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<uint8_t> weights(kWeightBytes);
  static const std::vector<uint8_t> kernels =
      test::readFile(PARTITA_FUZZ_KERNELS);
  std::vector<uint8_t> bytes = test::artifactBytes(
      {data, data + size}, weights, {{abi::CpuLevel::x86_64_v3, kernels}});
  fuzz::MemoryFile file(bytes.data(), bytes.size());
  auto artifact = runtime::Artifact::open(file.path());
  if (!artifact) {
    fuzz::require(!artifact.status().message().empty(),
                  "an error has a message");
    return 0;
  }
  const abi::Plan &plan = (*artifact)->plan();
  if (!small(plan))
    return 0;
  runtime::SessionOptions options;
  options.pin = false;
  options.timeout_s = 5;
  // What weights hold is not what is tested, and their hashes hold no more.
  options.trust_weights = true;
  auto session = runtime::Session::create(*artifact, options);
  if (session)
    runStep(**session, plan);
  else
    fuzz::require(!session.status().message().empty(),
                  "an error has a message");
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
  return fuzz::mutatePlan(data, size, most, seed);
}

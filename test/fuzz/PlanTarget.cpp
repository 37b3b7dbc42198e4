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
#include "test/fuzz/PlanStep.h"
#include "test/fuzz/Target.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/session/Session.h"

using namespace partita;

namespace {

constexpr size_t kWeightBytes = 1 << 17;

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
  if (!fuzz::small(plan))
    return 0;
  runtime::SessionOptions options;
  options.pin = false;
  options.timeout_s = 5;
  // What weights hold is not what is tested, and their hashes hold no more.
  options.trust_weights = true;
  auto session = runtime::Session::create(*artifact, options);
  if (session)
    fuzz::runStep(**session, plan);
  else
    fuzz::require(!session.status().message().empty(),
                  "an error has a message");
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
  return fuzz::mutatePlan(data, size, most, seed);
}

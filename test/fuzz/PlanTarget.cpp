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
// and runs a step. A plan that learns has one beside it that evaluates.
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

/// One that does nothing, for the same devices.
std::vector<uint8_t> evalPlanFor(const abi::Plan &plan) {
  test::PlanSpec eval;
  eval.entry = "eval";
  for (int64_t i = 0; i < runtime::length(plan.devices()); ++i) {
    eval.addDevice();
    eval.devices.back().kind = plan.devices()->Get(unsigned(i))->kind();
  }
  return test::encode(eval);
}

bool learns(const uint8_t *data, size_t size) {
  flatbuffers::Verifier verifier(data, size);
  return abi::VerifyPlanBuffer(verifier) &&
         runtime::text(abi::GetPlan(data)->entry()) == std::string("train");
}

runtime::Expected<std::shared_ptr<const runtime::Artifact>>
open(const std::string &path, bool trains) {
  if (!trains)
    return runtime::Artifact::open(path);
  auto training = runtime::Artifact::openTraining(path);
  if (!training)
    return training.status();
  return training->train;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<uint8_t> weights(kWeightBytes);
  static const std::vector<uint8_t> kernels =
      test::readFile(PARTITA_FUZZ_KERNELS);
  std::vector<std::vector<uint8_t>> plans = {{data, data + size}};
  const bool trains = learns(data, size);
  if (trains)
    plans.push_back(evalPlanFor(*abi::GetPlan(data)));
  std::vector<uint8_t> bytes = test::artifactOfPlans(
      plans, weights, {{abi::CpuLevel::x86_64_v3, kernels}});
  fuzz::MemoryFile file(bytes.data(), bytes.size());
  auto artifact = open(file.path(), trains);
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

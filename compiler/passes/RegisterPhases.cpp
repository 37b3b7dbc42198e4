//===- RegisterPhases.cpp - The phases as flags of partita-opt ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Phases.h"

#include "mlir/Pass/PassRegistry.h"

namespace partita::passes {
namespace {

template <typename... Options>
void registerAll(const Phase<Options> &...phases) {
  (mlir::PassPipelineRegistration<Options>(phases.name, phases.description,
                                           phases.addPasses),
   ...);
}

} // namespace

void registerPhases() {
  registerAll(kMesh, kSimplify, kDifferentiate, kTrain, kOptimize, kShard,
              kDecide, kCut, kLower, kPlan);
}

} // namespace partita::passes

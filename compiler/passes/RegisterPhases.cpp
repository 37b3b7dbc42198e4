//===- RegisterPhases.cpp - The phases as flags of partita-opt ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Phases.h"

#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/Format.h"

#include <tuple>

namespace partita::passes {
namespace {

/// Calls a function with each phase, in the order of the compiler.
template <typename Function> void forEachPhase(Function &&function) {
  std::apply([&](const auto &...phases) { (function(phases), ...); },
             std::tie(kMesh, kSimplify, kDifferentiate, kTrain, kOptimize,
                      kShard, kDecide, kCut, kLower, kPlan));
}

} // namespace

void registerPhases() {
  registerPhasePasses();
  forEachPhase([]<typename Options>(const Phase<Options> &phase) {
    mlir::PassPipelineRegistration<Options>(phase.name, phase.description,
                                            phase.addPasses);
  });
}

void printPhases(llvm::raw_ostream &os) {
  forEachPhase([&](const auto &phase) {
    os << "  --" << llvm::left_justify(phase.name, 24) << "- "
       << phase.description << "\n";
  });
}

} // namespace partita::passes

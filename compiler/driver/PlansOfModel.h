//===- PlansOfModel.h - Which plans an artifact has -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_PLANSOFMODEL_H
#define PARTITA_COMPILER_DRIVER_PLANSOFMODEL_H

#include "compiler/driver/PlanCompilation.h"

namespace partita::driver {

/// The options of each plan: one for each combination of sizes, the last
/// dimension counting fastest. Each has one to learn and one to evaluate, if
/// the model is trained.
std::vector<CompileOptions> getPlans(const CompileOptions &options);

/// Makes the plan that evaluates have each state where the plan that learns has
/// it, and as many micro-batches a step.
void followStages(const PlanCompilation &learns, CompileOptions &options);

/// Whether all plans have a state on the same device.
mlir::LogicalResult checkStates(llvm::ArrayRef<emit::CompiledPlan> plans);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_PLANSOFMODEL_H

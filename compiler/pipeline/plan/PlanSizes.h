//===- PlanSizes.h - For which sizes a plan is ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_PLANSIZES_H
#define PARTITA_COMPILER_PIPELINE_PLAN_PLANSIZES_H

#include "llvm/ADT/StringRef.h"

namespace partita::pipeline {

/// On a module, before it is a plan: the dimensions for whose sizes an artifact
/// has several plans, with the sizes of this one, and the input that is 0 where
/// samples are padded to them. `plan.model` has them later.
inline constexpr llvm::StringLiteral kDimensionsAttr = "plan.dimensions";
inline constexpr llvm::StringLiteral kMaskAttr = "plan.mask";

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_PLANSIZES_H

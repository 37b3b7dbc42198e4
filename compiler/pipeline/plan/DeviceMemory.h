//===- DeviceMemory.h - The planned memory of a device ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_DEVICEMEMORY_H
#define PARTITA_COMPILER_PIPELINE_PLAN_DEVICEMEMORY_H

#include "dialects/plan/PlanDialect.h"

namespace partita::pipeline {

/// The bytes of the arena, of parameters, of packed parameters and of the
/// workspace of one core. A device that executes the program holds them at the
/// end of loading and from then on. The originals of constants that a library
/// has reordered are freed before that.
int64_t getPlannedPeak(plan::ProgramOp program);

/// The program with the largest planned peak; null if there is none.
plan::ProgramOp findFullest(mlir::ModuleOp module);

/// Bytes that a device of the plan has; 0: not given.
int64_t getMemory(mlir::ModuleOp module);

/// Whether the planned peak of every device is within that.
bool fitsMemory(mlir::ModuleOp module);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_DEVICEMEMORY_H

//===- DeviceMemory.h - What a device holds beside its arena ----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_DEVICEMEMORY_H
#define PARTITA_COMPILER_PIPELINE_PLAN_DEVICEMEMORY_H

#include "dialects/plan/PlanDialect.h"

namespace partita::pipeline {

/// Fills in parameter_bytes, packed_bytes and workspace_bytes of a device whose
/// units, load program and program are complete. `workspace`: bytes of scratch
/// for any library call on each core; attention has its scores on top.
void planDeviceMemory(plan::DeviceOp device, int64_t workspace);

/// Arena, parameters, packed parameters and the workspace of one core. What the
/// device holds at the end of loading and from then on; constants that a
/// library reorders are given back when it has.
int64_t getPlannedPeak(plan::DeviceOp device);

/// Bytes that a device of the plan has room for; 0: nobody said.
int64_t getMemory(mlir::ModuleOp module);

/// Whether the planned peak of every device is within that.
bool fitsMemory(mlir::ModuleOp module);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_DEVICEMEMORY_H

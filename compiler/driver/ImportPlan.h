//===- ImportPlan.h - The model as phases take it ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_IMPORTPLAN_H
#define PARTITA_COMPILER_DRIVER_IMPORTPLAN_H

#include "compiler/driver/Compile.h"

namespace partita::driver {

/// Reads the model of a plan, and writes on it what phases must know of the
/// plan: target, sizes, entry, stages that another plan has decided. So the
/// phases can be repeated on the module alone.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importPlan(mlir::MLIRContext &context, const CompileOptions &options,
           int64_t replicas);

/// Proves that samples along the arguments' `nn.batch_axis` are independent,
/// and writes the axes of the results. Without proof a remark names the first
/// op that combines them, and the module gets `nn.mixes`. A model with ops that
/// cross replicas stays as it is: its statistics are those of whole
/// micro-batches.
void proveSampleAxes(mlir::ModuleOp module,
                     const import::ImportOptions &options);

/// Why a model does not compute each sample by itself, from all of its inputs
/// with a dimension 0 to all outputs, along dimension 0, and for each of some
/// numbers of samples; "" if it does.
std::string findMixing(mlir::ModuleOp module,
                       const import::ImportOptions &options,
                       llvm::ArrayRef<int64_t> counts);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_IMPORTPLAN_H

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

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_IMPORTPLAN_H

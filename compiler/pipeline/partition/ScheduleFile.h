//===- ScheduleFile.h - A schedule that a person wrote ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a schedule is named, a file of orders (compiler/schedule/OrderFile.h)
// may be, too. The function has its text then (`dist.orders`), and its path as
// the name of the schedule.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_SCHEDULEFILE_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_SCHEDULEFILE_H

#include "compiler/schedule/OrderFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace partita::pipeline {

/// Whether a schedule is no name, but a file that exists.
bool isScheduleFile(llvm::StringRef schedule);

/// The micro-batches of a step by a schedule that is a file. None, if it is a
/// name, or if there is something wrong with the file, which is an error later.
std::optional<int64_t> countMicroBatches(llvm::StringRef schedule);

/// Reads a file into the attributes of a function. Errors name its lines.
mlir::FailureOr<schedule::OrderFile>
readScheduleFile(mlir::func::FuncOp function, llvm::StringRef path);

/// The orders that a function has; none, if its schedule is a name.
mlir::FailureOr<std::optional<schedule::OrderFile>>
getScheduleFile(mlir::func::FuncOp function);

/// For messages about the file as a whole.
mlir::Location getScheduleFileLoc(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_SCHEDULEFILE_H

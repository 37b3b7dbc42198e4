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

/// The schedule of a function, and the orders if it is a file.
struct NamedSchedule {
  const schedule::ScheduleKind *kind = nullptr; ///< see getScheduleKind
  std::optional<schedule::OrderFile> file;

  /// Whether gradients of weights are units of their own.
  bool splitsBackward() const {
    return file ? file->isSplit : kind->splitsBackward;
  }
};
/// Fails, with a diagnostic, if there is no such kind, or the file is wrong.
mlir::FailureOr<NamedSchedule> getSchedule(mlir::func::FuncOp function);

/// The micro-batches of a step, if a function says it; else as many as its
/// schedule wants for stages and devices that have work.
int64_t getMicroBatches(mlir::func::FuncOp function,
                        const schedule::ScheduleKind &kind, int64_t stages,
                        int64_t devices);

/// For messages about the file as a whole.
mlir::Location getScheduleFileLoc(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_SCHEDULEFILE_H

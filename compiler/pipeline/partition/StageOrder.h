//===- StageOrder.h - Stages in the order of their dependences --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_STAGEORDER_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_STAGEORDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

/// The stages that ops of the function have by `dist.stage`, each after all
/// that it reads from; of those that could come next, the lowest number. Fails,
/// with a diagnostic that names the ops of a smallest cycle, if there is no
/// such order.
mlir::FailureOr<llvm::SmallVector<int64_t>>
getStageOrder(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_STAGEORDER_H

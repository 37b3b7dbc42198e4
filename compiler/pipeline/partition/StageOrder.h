//===- StageOrder.h - Stages in the order of their dependences --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_STAGEORDER_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_STAGEORDER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace partita::pipeline {

/// The stages that `dist.stage` gives to ops of the function, in a topological
/// order. Among stages that could come next, the one with the lowest number
/// does. If there is a cycle, this fails with a diagnostic that names the ops
/// of a shortest one.
mlir::FailureOr<llvm::SmallVector<int64_t>>
getStageOrder(mlir::func::FuncOp function);

/// The stage of each ONNX node that computes something of the loss, or of the
/// outputs where nothing is trained; of a node in several stages, that of its
/// op with the most work.
std::map<std::string, int64_t> getStagesOfNodes(mlir::func::FuncOp function);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_STAGEORDER_H

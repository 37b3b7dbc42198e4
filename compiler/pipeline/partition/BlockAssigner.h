//===- BlockAssigner.h - The blocks of a file, op by op ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_BLOCKASSIGNER_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_BLOCKASSIGNER_H

#include "compiler/model/PartitionFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

/// The block of each op of `getActiveOps`, an index into the file's blocks, of
/// which there must be one. What they leave out joins a neighbour, with a
/// remark. Errors are diagnostics that name `path`.
mlir::FailureOr<std::vector<int>> assignBlocks(mlir::func::FuncOp function,
                                               const PartitionFile &file,
                                               llvm::StringRef path);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_BLOCKASSIGNER_H

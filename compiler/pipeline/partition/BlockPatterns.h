//===- BlockPatterns.h - Blocks in a person's words -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Says in a few words which ops of a model are in which block, so that
// `assignBlocks` finds the same:
//
//   begin_blocks: {B0: embeddings, B1: encoder.layer.6}
//
// or, where blocks do not follow one another in the order of the model,
//
//   blocks: {B0: ["encoder.layer.[0-5]", "/scale"], B1: ["/conv/*"]}
//
// or both: globs for what is in another block than its neighbours.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PARTITION_BLOCKPATTERNS_H
#define PARTITA_COMPILER_PIPELINE_PARTITION_BLOCKPATTERNS_H

#include "compiler/model/PartitionFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>
#include <vector>

namespace partita::pipeline {

struct BlockPatterns {
  std::string name;
  std::vector<std::string> globs;   ///< in the order of the model
  std::optional<std::string> begin; ///< a node or module
};

/// The blocks of a function whose ops carry `dist.block`, in the order of the
/// model, with as few globs and begins as it finds. Fails, with a diagnostic,
/// if an op has no name by which it could be named.
mlir::FailureOr<std::vector<BlockPatterns>>
describeBlocks(mlir::func::FuncOp function);

/// The block of each op of `getActiveOps`, an index into the file's blocks, of
/// which there must be one. What they leave out joins a neighbour, with a
/// remark. Errors are diagnostics that name `path`.
mlir::FailureOr<std::vector<int>> assignBlocks(mlir::func::FuncOp function,
                                               const PartitionFile &file,
                                               llvm::StringRef path);

/// Joins names that differ in one number: "layer.0", "layer.1" and "layer.2"
/// to "layer.[0-2]", "layer.9" and "layer.10" to "layer.{9,10}". The order is
/// that of the first of each; names must hold no special characters of globs.
std::vector<std::string> joinNumbered(llvm::ArrayRef<std::string> names);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PARTITION_BLOCKPATTERNS_H

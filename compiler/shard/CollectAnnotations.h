//===- CollectAnnotations.h - The decision as annotations -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_COLLECTANNOTATIONS_H
#define PARTITA_COMPILER_SHARD_COLLECTANNOTATIONS_H

#include "dialects/dist/Annotations.h"

#include "mlir/IR/BuiltinOps.h"

namespace partita::shard {

/// On the function, if the module has `dist.numbered_nodes`: how the results of
/// nodes are cut, a dictionary of shardings by `getResultKey`. It has only
/// those that `NodeTensors` finds.
inline constexpr llvm::StringLiteral kResultShardsAttr = "dist.result_shards";
std::string getResultKey(llvm::StringRef node, llvm::StringRef tensor);

/// What was decided about the nodes of `dist.numbered_nodes`: stages, the
/// devices of stages, and how tensors are cut. `decided` has stages, and
/// shardings in its attributes. Emits a remark for what annotations cannot say.
/// Devices along the axis "data" are left out, and the others are numbered as
/// if it was not there.
dist::Annotations collectAnnotations(mlir::ModuleOp decided);

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_COLLECTANNOTATIONS_H

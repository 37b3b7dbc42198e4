//===- Passes.h - Tensors over meshes ---------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_PASSES_H
#define PARTITA_COMPILER_SHARD_PASSES_H

#include "compiler/model/ModelPass.h"
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>

namespace partita::shard {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/shard/Passes.h.inc"

struct ShardOptions {
  std::string file;     ///< partition file; empty: none
  bool explain = false; ///< remarks about collectives, and what spares them
};

/// Adds the passes that make one program of the step of one replica. They come
/// before anything else is done with the model.
void addReplicaPasses(mlir::OpPassManager &pm);

/// Adds the passes that cut tensors, in order. Afterwards the model's function
/// is what one device of the mesh computes. Without axes to cut along nothing
/// changes.
void addShardPasses(mlir::OpPassManager &pm, const ShardOptions &options);

} // namespace partita::shard

#endif // PARTITA_COMPILER_SHARD_PASSES_H

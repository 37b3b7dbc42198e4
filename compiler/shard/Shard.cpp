//===- Shard.cpp - Tensors over meshes: the passes in order ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::shard {

void addReplicaPasses(OpPassManager &pm) {
  pm.addPass(createDistFormReplicasPass());
  pm.addPass(createDistConnectReplicasPass());
}

void addShardPasses(OpPassManager &pm, const ShardOptions &options) {
  // What a person said comes first, and stays.
  if (!options.file.empty())
    pm.addPass(createDistSeedPass({options.file}));
  pm.addPass(createDistChooseShardingsPass({options.machine, options.threads}));
  pm.addPass(createDistPropagatePass());
  pm.addPass(createDistReshardPass());
  pm.addPass(createDistLocalizePass({options.machine, options.threads}));
  // The same part of a weight, for several readers.
  pm.addPass(createCSEPass());
}

} // namespace partita::shard

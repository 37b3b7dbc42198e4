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
  pm.addPass(createDistChooseShardingsPass());
  pm.addPass(createDistCutStatesPass());
  pm.addPass(createDistPropagatePass());
  // Other cuts are tried while weights and inputs can still be cut otherwise.
  if (options.explain)
    pm.addPass(createDistExplainCollectivesPass());
  pm.addPass(createDistReshardPass());
  pm.addPass(createDistDelaySumsPass());
  pm.addPass(createDistLocalizePass());
  // The same part of a weight, for several readers.
  pm.addPass(createCSEPass());
  // Which ones are left is known then.
  pm.addPass(createDistCombineCollectivesPass());
}

} // namespace partita::shard

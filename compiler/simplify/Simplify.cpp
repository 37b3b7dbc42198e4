//===- Simplify.cpp - The passes in order ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::simplify {

void addCanonicalPasses(OpPassManager &pm) {
  // Brings broadcasts, reshapes and transposes to the one form that the passes
  // below look for.
  pm.addPass(createCanonicalizerPass());
  // One copy of each mask and each scale, so that uses can be counted.
  pm.addPass(createCSEPass());
  // Scales and masks become small again: a vector, then one broadcast.
  pm.addNestedPass<func::FuncOp>(createDelayBroadcastsPass());
  // Before derivatives and cuts: those of gathered weights are large.
  pm.addNestedPass<func::FuncOp>(createRaiseExpertsPass());
}

void addMixedPrecision(OpPassManager &pm, const std::string &type) {
  if (!type.empty())
    pm.addNestedPass<func::FuncOp>(createMixedPrecisionPass({type}));
}

void addOptimizePasses(OpPassManager &pm, const OptimizeOptions &options) {
  pm.addNestedPass<func::FuncOp>(createExpandCallsPass({options.libraryCalls, false}));
  // Before anything is computed of whole tables.
  pm.addNestedPass<func::FuncOp>(createGatherFirstPass());
  // Batch normalization goes into the weights while it still stands directly
  // behind its convolution.
  pm.addNestedPass<func::FuncOp>(createFoldScalePass());
  // A bias that was scaled with it is a vector again.
  pm.addNestedPass<func::FuncOp>(createDelayBroadcastsPass());
  // What the scaling left behind: constants that fold, factors of one.
  pm.addPass(createCanonicalizerPass());
  // As what their target computes best.
  pm.addNestedPass<func::FuncOp>(
      createExpandConvGradientsPass({options.libraryCalls}));
  // Before layouts change, while dots have the form of the model.
  pm.addNestedPass<func::FuncOp>(
      createRaiseAttentionPass({options.libraryCalls, options.attentionCalls}));
  // Those that are no attention.
  pm.addNestedPass<func::FuncOp>(createSimplifyProductsPass());
  // Transposes that attention made meet those of the model.
  pm.addPass(createCanonicalizerPass());
  // Last of the rewrites: what follows sees the layout that is computed with.
  pm.addNestedPass<func::FuncOp>(createChannelsLastPass());
  pm.addNestedPass<func::FuncOp>(createContractStatesPass());
  // Products have their last form: transposed states are read as they lie.
  addMixedPrecision(pm, options.mixedPrecision);
  // Transposes that met vanish, and so does what they made dead.
  pm.addPass(createCanonicalizerPass());
  // Two consumers of one value have asked for the same transpose.
  pm.addPass(createCSEPass());
  // Which dimensions lie inside is known now.
  pm.addNestedPass<func::FuncOp>(createSplitReductionsPass());
  // Weights that only folded away computation used.
  pm.addPass(createSymbolDCEPass());
}

void addSimplifyPasses(OpPassManager &pm) {
  addCanonicalPasses(pm);
  addOptimizePasses(pm);
}

void registerSimplifyPipeline() {
  PassPipelineRegistration<>("nn-simplify",
                             "all passes that simplify a model, in order",
                             [](OpPassManager &pm) { addSimplifyPasses(pm); });
}

} // namespace partita::simplify

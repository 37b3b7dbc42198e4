//===- ModelPhases.cpp - The phases on the whole model --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Passes.h"
#include "compiler/passes/Phases.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/shard/Passes.h"
#include "compiler/simplify/Passes.h"
#include "compiler/train/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::passes {
namespace {

void addMesh(OpPassManager &pm, const MeshOptions &options) {
  // What the model says comes first. A person's word may add to it.
  pm.addPass(shard::createDistReadAnnotationsPass());
  pipeline::DistAssignMeshPassOptions mesh;
  mesh.file = options.file;
  mesh.devices = options.devices;
  llvm::append_range(mesh.givenAxes, options.axes.get());
  mesh.dataParallel = options.dataParallel;
  mesh.replicas = options.replicas;
  mesh.tensorParallel = options.tensorParallel;
  mesh.reproducible = options.reproducible;
  mesh.zero = options.zero;
  mesh.fusionBytes = options.fusionBytes;
  llvm::append_range(mesh.targets, options.targets.get());
  pm.addPass(pipeline::createDistAssignMeshPass(std::move(mesh)));
}

void addSimplify(OpPassManager &pm, const SimplifyOptions &options) {
  // What one replica computes of the whole batch comes first: all phases see
  // one program.
  pm.addPass(shard::createDistFormReplicasPass());
  pm.addPass(shard::createDistConnectReplicasPass());
  if (!options.expose.empty())
    pm.addPass(pipeline::createExposeValuesPass({options.expose}));
  pm.addNestedPass<func::FuncOp>(
      simplify::createWidenHalvesPass({/*keep=*/options.reference}));
  pm.addPass(autodiff::createExpandRecurrentPass(
      {/*inputs=*/false, /*doubles=*/true}));
  if (!options.reference)
    simplify::addCanonicalPasses(pm);
}

void addDifferentiate(OpPassManager &pm, const DifferentiateOptions &options) {
  pm.addNestedPass<func::FuncOp>(
      simplify::createExpandCallsPass({/*libraryCalls=*/false,
                                       /*keepDifferentiable=*/true}));
  // While parameters still have the names of the model.
  autodiff::ChooseParametersPassOptions parameters;
  llvm::append_range(parameters.freeze, options.freeze.get());
  llvm::append_range(parameters.trainOnly, options.trainOnly.get());
  pm.addPass(autodiff::createChooseParametersPass(parameters));
  if (options.loss.empty())
    return;
  pm.addPass(autodiff::createAddLossPass(
      {options.loss, options.parts && !options.evaluate, options.evaluate}));
  if (options.evaluate)
    return;
  pm.addPass(autodiff::createExpandAttentionPass());
  pm.addPass(
      autodiff::createExpandRecurrentPass({options.inputs, /*doubles=*/false}));
  pm.addPass(autodiff::createDifferentiatePass({options.inputs, options.mark}));
  // Parts that several derivatives need.
  pm.addPass(createCSEPass());
}

void addTrain(OpPassManager &pm, const TrainOptions &options) {
  if (options.evaluate)
    return pm.addPass(train::createMarkStatesPass());
  if (options.optimizer.empty())
    return pm.addPass(train::createSumGradientsPass({options.microBatches}));
  train::AddOptimizerPassOptions optimizer;
  optimizer.optimizer = options.optimizer;
  llvm::append_range(optimizer.groups, options.groups.get());
  optimizer.clipNorm = options.clipNorm;
  optimizer.microBatches = options.microBatches;
  optimizer.guardStates = options.guardStates;
  optimizer.onHost = options.onHost;
  pm.addPass(train::createAddOptimizerPass(optimizer));
  train::ChooseInitialValuesPassOptions initial;
  llvm::append_range(initial.init, options.init.get());
  pm.addPass(train::createChooseInitialValuesPass(initial));
}

void addOptimize(OpPassManager &pm, const OptimizeOptions &options) {
  if (!options.expose.empty())
    pm.addPass(pipeline::createExposeValuesPass({options.expose}));
  if (options.reference) {
    pm.addNestedPass<func::FuncOp>(
        simplify::createExpandCallsPass({false, false}));
    simplify::addMixedPrecision(pm, options.mixedPrecision);
    return pm.addPass(createCSEPass()); // for what nobody reads
  }
  if (options.canonicalize)
    simplify::addCanonicalPasses(pm);
  simplify::addOptimizePasses(pm, {options.libraryCalls, options.attentionCalls,
                                   options.mixedPrecision});
}

} // namespace

const Phase<MeshOptions> kMesh = {
    "partita-mesh", "which devices there are, by annotations and options",
    addMesh};
const Phase<SimplifyOptions> kSimplify = {
    "partita-simplify", "bring a model to the form that other phases look for",
    addSimplify};
const Phase<DifferentiateOptions> kDifferentiate = {
    "partita-differentiate",
    "put a loss and its gradients in the place of the model's results",
    addDifferentiate};
const Phase<TrainOptions> kTrain = {
    "partita-train", "make a step of training of a loss and its gradients",
    addTrain};
const Phase<OptimizeOptions> kOptimize = {
    "partita-optimize", "rewrite the whole model so that it is faster",
    addOptimize};

} // namespace partita::passes

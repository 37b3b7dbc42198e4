//===- DevicePhases.cpp - The phases from one model to many devices -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Passes.h"
#include "compiler/passes/Phases.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/shard/Passes.h"
#include "compiler/train/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::passes {
namespace {

void addFusePass(OpPassManager &pm, const FuseOptions &options,
                 fuse::FusePlace place) {
  pm.addPass(fuse::createFuseClustersPass(
      {options.winograd, options.libraryCalls, options.reference, place}));
}

void addShard(OpPassManager &pm, const ShardOptions &options) {
  pm.addPass(train::createFormAccumulatorsPass());
  pm.addPass(createDistPriceAlonePass(
      {options.winograd, options.libraryCalls, options.reference}));
  // What is fused depends on the sizes of tensors, and changes how results
  // round. So it is decided about the tensors of one device, unless no number
  // may depend on how they are cut.
  addFusePass(pm, options, fuse::FusePlace::before_cuts);
  // What a person said comes first, and stays.
  if (!options.file.empty())
    pm.addPass(shard::createDistSeedPass({options.file}));
  pm.addPass(shard::createDistChooseShardingsPass());
  pm.addPass(shard::createDistCutStatesPass());
  pm.addPass(shard::createDistPropagatePass());
  // Other cuts are tried while weights and inputs can still be cut otherwise.
  if (options.explain)
    pm.addPass(shard::createDistExplainCollectivesPass());
  pm.addPass(shard::createDistReshardPass());
  pm.addPass(shard::createDistDelaySumsPass());
  pm.addPass(shard::createDistLocalizePass());
  // The same part of a weight, for several readers.
  pm.addPass(createCSEPass());
  // Which ones are left is known then.
  pm.addPass(shard::createDistCombineCollectivesPass());
  addClusterPasses(pm, options, fuse::FusePlace::behind_cuts);
  // What is computed together is decided: nothing changes any more.
  if (!options.expose.empty())
    pm.addPass(pipeline::createExposeValuesPass({options.expose}));
}

void addDecide(OpPassManager &pm, const DecideOptions &options) {
  // What a person said becomes attributes before anything is decided.
  pipeline::DistAssignBlocksPassOptions blocks;
  blocks.file = options.file;
  blocks.devices = options.devices;
  blocks.microBatches = options.microBatches;
  blocks.stages = options.stages;
  blocks.schedule = options.schedule;
  blocks.memory = options.memory;
  pm.addPass(pipeline::createDistAssignBlocksPass(std::move(blocks)));
  // The rest is decided on the whole graph.
  pm.addPass(pipeline::createDistAssignStagesPass(
      {options.memoryTry, options.wholeNodes}));
  // How many micro-batches there are depends on the stages that have work.
  pm.addPass(pipeline::createDistChooseSchedulePass());
  // The decision is complete, and the ops still carry their nodes' names.
  if (!options.emitFile.empty())
    pm.addPass(pipeline::createDistWritePartitionPass({options.emitFile}));
}

void addCut(OpPassManager &pm, const CutOptions &options) {
  const bool recomputes =
      !options.recompute.empty() && options.recompute != "none";
  if (recomputes || !options.recomputeNodes.empty()) {
    pipeline::DistRecomputePassOptions recompute;
    if (recomputes)
      recompute.kind = options.recompute;
    llvm::append_range(recompute.nodes, options.recomputeNodes.get());
    pm.addPass(pipeline::createDistRecomputePass(std::move(recompute)));
  }
  pm.addPass(pipeline::createDistFormStagesPass({options.target}));
  // What another kind of device computes, its own backend fuses.
  addFusePass(pm, options, fuse::FusePlace::own_targets);
  pm.addPass(pipeline::createDistPriceStagesPass());
}

void addLower(OpPassManager &pm, const LowerOptions &options) {
  pm.addPass(fuse::createFormClustersPass());
  pm.addPass(codegen::createLowerClustersPass({options.reference}));
}

void addPlan(OpPassManager &pm, const PlanOptions &options) {
  pm.addPass(pipeline::createPlanGroupKernelsPass());
  // Needs lowered clusters: what may share bytes depends on the lowering.
  pm.addPass(pipeline::createPlanBuildPass());
  pm.addPass(pipeline::createPlanPlacePass());
  pipeline::PlanReserveMemoryPassOptions memory;
  if (options.workspace)
    memory.workspace = options.workspace << 20;
  pm.addPass(pipeline::createPlanReserveMemoryPass(memory));
  // Nothing that can deadlock leaves the compiler.
  pm.addPass(pipeline::createPlanVerifySchedulePass());
}

} // namespace

void addClusterPasses(OpPassManager &pm, const FuseOptions &options,
                      fuse::FusePlace place) {
  pm.addPass(train::createScatterUponSumsPass());
  pm.addPass(train::createCombineLanesPass());
  addFusePass(pm, options, place);
}

const Phase<ShardOptions> kShard = {
    "partita-shard",
    "cut tensors over the mesh, and decide what is computed together",
    addShard};
const Phase<DecideOptions> kDecide = {
    "partita-decide", "assign blocks and stages, and name the schedule",
    addDecide};
const Phase<CutOptions> kCut = {
    "partita-cut", "outline the stages and their transfers", addCut};
const Phase<LowerOptions> kLower = {
    "partita-lower", "outline clusters, and choose how each is computed",
    addLower};
const Phase<PlanOptions> kPlan = {
    "partita-plan", "schedule units, place memory, and prove that it works",
    addPlan};

} // namespace partita::passes

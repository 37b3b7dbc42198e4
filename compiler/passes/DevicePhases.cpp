//===- DevicePhases.cpp - The phases from one model to many devices -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Codegen.h"
#include "compiler/passes/Phases.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/shard/Passes.h"
#include "compiler/train/Passes.h"

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
  shard::addShardPasses(pm, {options.file, options.explain});
  addClusterPasses(pm, options, fuse::FusePlace::behind_cuts);
  // What is computed together is decided: nothing changes any more.
  if (!options.expose.empty())
    pm.addPass(pipeline::createExposeValuesPass({options.expose}));
}

void addDecide(OpPassManager &pm, const DecideOptions &options) {
  pipeline::PartitionOptions partition;
  partition.file = options.file;
  partition.devices = options.devices;
  partition.microBatches = options.microBatches;
  partition.stages = options.stages;
  partition.schedule = options.schedule;
  partition.memory = options.memory;
  partition.memoryTry = options.memoryTry;
  partition.wholeNodes = options.wholeNodes;
  partition.emitFile = options.emitFile;
  pipeline::addDecisionPasses(pm, partition);
}

void addCut(OpPassManager &pm, const CutOptions &options) {
  pipeline::PartitionOptions partition;
  partition.target = options.target;
  partition.recompute = options.recompute;
  partition.recomputeNodes = options.recomputeNodes.get();
  pipeline::addCutPasses(pm, partition);
  // What another kind of device computes, its own backend fuses.
  addFusePass(pm, options, fuse::FusePlace::own_targets);
  pipeline::addPricePasses(pm, partition);
}

void addLower(OpPassManager &pm, const LowerOptions &options) {
  pm.addPass(fuse::createFormClustersPass());
  codegen::addCodegenPasses(pm, options.reference);
}

void addPlan(OpPassManager &pm, const PlanOptions &options) {
  pipeline::PartitionOptions partition;
  partition.workspaceMiB = options.workspace;
  pipeline::addPlanPasses(pm, partition);
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

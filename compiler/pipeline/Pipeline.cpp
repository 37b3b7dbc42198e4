//===- Pipeline.cpp - Partition, schedule, memory: the passes in order ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Pipeline.h"

#include "compiler/model/PartitionFile.h"
#include "compiler/pipeline/Passes.h"
#include "dialects/dist/DistDialect.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace partita::pipeline {

FailureOr<int64_t> readReplicas(Location loc, const PartitionOptions &options) {
  FailureOr<PartitionFile> file = readPartitionFile(loc, options.file);
  if (failed(file))
    return failure();
  if (options.replicas > 0)
    return options.replicas;
  for (const FileAxis &axis : file->mesh)
    if (axis.name.text == dist::kReplicaAxis)
      return axis.size;
  return 1;
}

FailureOr<std::vector<std::string>>
readTargets(Location loc, const PartitionOptions &options) {
  FailureOr<PartitionFile> file = readPartitionFile(loc, options.file);
  if (failed(file))
    return failure();
  std::vector<std::string> targets;
  auto add = [&](const std::string &target) {
    if (!llvm::is_contained(targets, target))
      targets.push_back(target);
  };
  for (const FileText &target : file->targets)
    add(target.text);
  if (targets.empty())
    for (const std::string &target : options.targets)
      add(target);
  return targets;
}

FailureOr<std::string> readSchedule(Location loc,
                                    const PartitionOptions &options) {
  FailureOr<PartitionFile> file = readPartitionFile(loc, options.file);
  if (failed(file))
    return failure();
  if (options.schedule.empty() && file->schedule)
    return file->schedule->text;
  return options.schedule;
}

FailureOr<int> readZero(Location loc, const PartitionOptions &options) {
  FailureOr<PartitionFile> file = readPartitionFile(loc, options.file);
  if (failed(file))
    return failure();
  return options.zero == -1 && file->zero ? static_cast<int>(*file->zero)
                                          : options.zero;
}

void addMeshPasses(OpPassManager &pm, const PartitionOptions &options) {
  DistAssignMeshPassOptions mesh;
  mesh.file = options.file;
  mesh.devices = options.devices;
  mesh.givenAxes.assign(options.axes.begin(), options.axes.end());
  mesh.dataParallel = options.dataParallel;
  mesh.replicas = options.replicas;
  mesh.tensorParallel = options.tensorParallel;
  mesh.reproducible = options.reproducible;
  mesh.zero = options.zero;
  mesh.fusionBytes = options.fusionBytes;
  mesh.targets.assign(options.targets.begin(), options.targets.end());
  pm.addPass(createDistAssignMeshPass(std::move(mesh)));
}

void addDecisionPasses(OpPassManager &pm, const PartitionOptions &options) {
  // What a person said becomes attributes before anything is decided.
  DistAssignBlocksPassOptions blocks;
  blocks.file = options.file;
  blocks.devices = options.devices;
  blocks.microBatches = options.microBatches;
  blocks.stages = options.stages;
  blocks.schedule = options.schedule;
  blocks.memory = options.memory;
  pm.addPass(createDistAssignBlocksPass(blocks));
  // The rest is decided on the whole graph.
  pm.addPass(
      createDistAssignStagesPass({options.memoryTry, options.wholeNodes}));
  // How many micro-batches there are depends on the stages that have work.
  pm.addPass(createDistChooseSchedulePass());
  // The decision is complete, and the ops still carry their nodes' names.
  if (!options.emitFile.empty())
    pm.addPass(createDistWritePartitionPass({options.emitFile}));
}

void addCutPasses(OpPassManager &pm, const PartitionOptions &options) {
  const bool recomputes =
      !options.recompute.empty() && options.recompute != "none";
  if (recomputes || !options.recomputeNodes.empty()) {
    DistRecomputePassOptions recompute;
    if (recomputes)
      recompute.kind = options.recompute;
    recompute.nodes.assign(options.recomputeNodes.begin(),
                           options.recomputeNodes.end());
    pm.addPass(createDistRecomputePass(std::move(recompute)));
  }
  pm.addPass(createDistFormStagesPass({options.target}));
}

void addPricePasses(OpPassManager &pm, const PartitionOptions &options) {
  pm.addPass(createDistPriceStagesPass());
}

void addPartitionPasses(OpPassManager &pm, const PartitionOptions &options) {
  addDecisionPasses(pm, options);
  addCutPasses(pm, options);
}

void addPlanPasses(OpPassManager &pm, const PartitionOptions &options) {
  pm.addPass(createPlanGroupKernelsPass());
  // Needs lowered clusters: what may share bytes depends on the lowering.
  pm.addPass(createPlanBuildPass());
  pm.addPass(createPlanPlacePass());
  PlanReserveMemoryPassOptions memory;
  if (options.workspaceMiB)
    memory.workspace = options.workspaceMiB << 20;
  pm.addPass(createPlanReserveMemoryPass(memory));
  // Nothing that can deadlock leaves the compiler.
  pm.addPass(createPlanVerifySchedulePass());
}

} // namespace partita::pipeline

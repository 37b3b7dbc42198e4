//===- PhaseList.cpp - Which phases make a plan ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PhaseRunner.h"
#include "compiler/passes/Phases.h"

using namespace mlir;

namespace partita::driver {
namespace {

/// `fill` gets the options of the phase.
template <typename Options, typename Fill>
PhaseRun make(const passes::Phase<Options> &phase, Fill fill) {
  auto options = std::make_shared<Options>();
  fill(*options);
  return {phase.name, options->toText(),
          [add = phase.addPasses, options](OpPassManager &pm) {
            add(pm, *options);
          }};
}

PhaseRun makeMesh(const PartitionOptions &partition) {
  return make(passes::kMesh, [&](passes::MeshOptions &mesh) {
    mesh.file = partition.file;
    mesh.devices = partition.devices;
    mesh.axes = ArrayRef(partition.axes);
    mesh.dataParallel = partition.dataParallel;
    mesh.replicas = partition.replicas;
    mesh.tensorParallel = partition.tensorParallel;
    mesh.reproducible = partition.reproducible;
    mesh.zero = partition.zero;
    mesh.fusionBytes = partition.fusionBytes;
    mesh.targets = ArrayRef(partition.targets);
  });
}

PhaseRun makeDifferentiate(const CompileOptions &options) {
  const autodiff::AutodiffOptions &autodiff = options.autodiff;
  return make(passes::kDifferentiate, [&](passes::DifferentiateOptions &to) {
    to.loss = autodiff.loss;
    to.freeze = ArrayRef(autodiff.freeze);
    to.trainOnly = ArrayRef(autodiff.trainOnly);
    to.inputs = autodiff.inputs;
    to.mark = !options.expose.nodes.empty();
    to.parts = autodiff.results == autodiff::LossResults::parts;
    to.evaluate = autodiff.results == autodiff::LossResults::evaluation;
  });
}

PhaseRun makeTrain(const CompileOptions &options) {
  return make(passes::kTrain, [&](passes::TrainOptions &to) {
    to.optimizer = options.train.optimizer;
    to.groups = ArrayRef(options.train.groups);
    to.clipNorm = options.train.clipNorm;
    to.microBatches = options.train.microBatches;
    to.guardStates = !options.train.onNonfinite.empty();
    to.onHost = options.train.optimizerOnHost;
    to.init = ArrayRef(options.train.init);
    to.evaluate = options.autodiff.results == autodiff::LossResults::evaluation;
  });
}

/// Gradients are of no use to Winograd's method: where its rounding turns the
/// sign of an element before a ReLU, they jump.
void setFusion(passes::FuseOptions &to, const CompileOptions &options) {
  to.reference = options.reference;
  to.winograd = options.winograd && options.autodiff.loss.empty();
  to.libraryCalls = options.libraryCalls;
}

} // namespace

std::vector<PhaseRun> getModelPhases(const CompileOptions &options,
                                     const ModelFacts &facts) {
  std::vector<PhaseRun> phases;
  // A module that is printed says nothing of devices, if it need not.
  if (!facts.isAnnotated &&
      (options.kind != EmitKind::nn || facts.replicas > 1 || facts.targets > 1))
    phases.push_back(makeMesh(options.partition));
  const bool hasLoss = !options.autodiff.loss.empty();
  phases.push_back(make(passes::kSimplify, [&](passes::SimplifyOptions &to) {
    to.reference = options.reference;
    if (options.expose.unfused && !hasLoss)
      to.expose = options.expose.nodes;
  }));
  if (hasLoss || options.parameters)
    phases.push_back(makeDifferentiate(options));
  if (hasLoss && !options.parameters && options.sumsMicroBatches())
    phases.push_back(makeTrain(options));
  phases.push_back(make(passes::kOptimize, [&](passes::OptimizeOptions &to) {
    to.reference = options.reference;
    if (options.expose.unfused && hasLoss)
      to.expose = options.expose.nodes;
    to.canonicalize = hasLoss || options.parameters;
    to.libraryCalls = options.libraryCalls;
    to.attentionCalls = options.attentionCalls;
    to.mixedPrecision = options.mixedPrecision;
  }));
  return phases;
}

std::vector<PhaseRun> getShardPhases(const CompileOptions &options,
                                     const ModelFacts &facts) {
  std::vector<PhaseRun> phases;
  if (facts.isAnnotated)
    phases.push_back(makeMesh(options.partition));
  phases.push_back(make(passes::kShard, [&](passes::ShardOptions &to) {
    setFusion(to, options);
    to.file = options.partition.file;
    to.explain = options.explain;
    if (!options.expose.unfused)
      to.expose = options.expose.nodes;
  }));
  return phases;
}

std::vector<PhaseRun> getPlanPhases(const CompileOptions &options,
                                    const PartitionOptions &partition,
                                    EmitKind until) {
  std::vector<PhaseRun> phases;
  phases.push_back(make(passes::kDecide, [&](passes::DecideOptions &to) {
    to.file = partition.file;
    to.devices = partition.devices;
    to.microBatches = partition.microBatches;
    to.stages = partition.stages;
    to.schedule = partition.schedule;
    to.memory = partition.memory;
    to.memoryTry = partition.memoryTry;
    to.wholeNodes = partition.wholeNodes;
    to.emitFile = partition.emitFile;
  }));
  if (until == EmitKind::decision)
    return phases;
  phases.push_back(make(passes::kCut, [&](passes::CutOptions &to) {
    setFusion(to, options);
    to.target = partition.target;
    to.recompute = partition.recompute;
    to.recomputeNodes = ArrayRef(partition.recomputeNodes);
  }));
  if (until == EmitKind::stages)
    return phases;
  phases.push_back(make(passes::kLower, [&](passes::LowerOptions &to) {
    to.reference = options.reference;
  }));
  if (until == EmitKind::clusters)
    return phases;
  phases.push_back(make(passes::kPlan, [&](passes::PlanOptions &to) {
    to.workspace = partition.workspaceMiB;
  }));
  return phases;
}

} // namespace partita::driver

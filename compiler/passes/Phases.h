//===- Phases.h - The compiler's phases as pipelines of passes --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A phase is a named list of passes with options. The driver strings phases
// together, and partita-opt has each as a flag:
//
//   --partita-mesh            which devices there are
//   --partita-simplify        the one form that others look for
//   --partita-differentiate   a loss, and its gradients
//   --partita-train           what a step of training makes of them
//   --partita-optimize        rewrites that make a model faster
//   --partita-shard           what one device of the mesh computes, and what is
//                             computed together
//   --partita-decide          blocks, stages, schedule
//   --partita-cut             stages and transfers
//   --partita-lower           clusters and their lowering
//   --partita-plan            schedules, memory, programs
//
// A model that says by annotations of its own how it is split gets its mesh
// after --partita-optimize, for they name nodes as they will be computed. All
// others get it first. What a phase needs to know stands in the IR or in its
// options.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PASSES_PHASES_H
#define PARTITA_COMPILER_PASSES_PHASES_H

#include "compiler/fuse/Passes.h"
#include "compiler/model/ModelPass.h"
#include "compiler/passes/PhaseOptions.h"

#include "mlir/Pass/PassManager.h"

namespace partita::passes {

/// A phase and its name, with which partita-opt runs it.
template <typename OptionsT> struct Phase {
  using Options = OptionsT;
  llvm::StringLiteral name;
  llvm::StringLiteral description;
  void (*addPasses)(mlir::OpPassManager &pm, const OptionsT &options);
};

struct MeshOptions : mlir::PassPipelineOptions<MeshOptions>, PhaseOptions {
  Value<std::string> file{*this, "file", "partition file (YAML)"};
  Value<int> devices{*this, "devices",
                     "number of devices in all; 0: what the file says"};
  Texts axes{*this, "axes", "NAME=SIZE: the axes of the mesh, in order"};
  Value<int> dataParallel{*this, "data-parallel", "replicas; 0: not given"};
  Value<int> replicas{*this, "replicas",
                      "replicas that share a micro-batch; 0: not given"};
  Value<int> tensorParallel{*this, "tensor-parallel",
                            "devices that share tensors; 0: not given"};
  Value<bool> reproducible{*this, "reproducible",
                           "no number may depend on how tensors are cut"};
  Value<int> zero{*this, "zero",
                  "what replicas of a training share; -1: not given", -1};
  Value<int64_t> fusionBytes{
      *this, "fusion-bytes",
      "of gradients that replicas add up at once, at most; -1: not given", -1};
  Texts targets{*this, "targets",
                "the target of each device, if they are of several kinds"};
};
extern const Phase<MeshOptions> kMesh;

struct SimplifyOptions : mlir::PassPipelineOptions<SimplifyOptions>,
                         PhaseOptions {
  Value<bool> reference{*this, "reference",
                        "ops stay as the importer made them"};
  Value<std::string> expose{
      *this, "expose",
      "glob over nodes whose results become outputs, before any rewrite"};
};
extern const Phase<SimplifyOptions> kSimplify;

struct DifferentiateOptions : mlir::PassPipelineOptions<DifferentiateOptions>,
                              PhaseOptions {
  Value<std::string> loss{*this, "loss",
                          "KIND:OUTPUT[:INPUT][,OPTION=VALUE...]; empty: it is "
                          "only decided which parameters are trained"};
  Texts freeze{*this, "freeze", "globs of parameters that are not trained"};
  Texts trainOnly{*this, "train-only",
                  "globs of the parameters that are trained; none: all that "
                  "can be"};
  Value<bool> inputs{*this, "inputs", "gradients of the inputs, too"};
  Value<bool> mark{*this, "mark",
                   "locations say which tensors' cotangents ops compute"};
  Value<bool> parts{*this, "parts", "the loss is a sum and a count"};
  Value<bool> evaluate{*this, "evaluate",
                       "the loss is a sum and a count, with the labels that "
                       "are predicted, and there are no gradients"};
};
extern const Phase<DifferentiateOptions> kDifferentiate;

struct TrainOptions : mlir::PassPipelineOptions<TrainOptions>, PhaseOptions {
  Value<std::string> optimizer{
      *this, "optimizer",
      "KIND[,KEY=VALUE...]; empty: gradients are summed, and are results"};
  Texts groups{*this, "groups", "GLOB[|GLOB...][;KEY=VALUE...]", ';'};
  Value<double> clipNorm{*this, "clip-norm",
                         "the largest norm of all gradients together; 0: none"};
  Value<int64_t> microBatches{*this, "micro-batches", "of a step", 1};
  Value<bool> guardStates{*this, "guard-states",
                          "a step that is not finite changes no state"};
  Value<bool> onHost{*this, "on-host",
                     "what the optimizer keeps lies in the host's memory"};
  Texts init{*this, "init", "GLOB=KIND[;KEY=VALUE...]", ';'};
  Value<bool> evaluate{*this, "evaluate",
                       "the plan only reads the states of another"};
};
extern const Phase<TrainOptions> kTrain;

struct OptimizeOptions : mlir::PassPipelineOptions<OptimizeOptions>,
                         PhaseOptions {
  Value<bool> reference{*this, "reference", "nothing is rewritten"};
  Value<std::string> expose{*this, "expose",
                            "a glob of nodes whose results, and the loss's "
                            "derivatives to them, become results first"};
  Value<bool> canonicalize{*this, "canonicalize",
                           "simplify once more before: what derivatives added"};
  Value<bool> libraryCalls{*this, "library-calls",
                           "libraries compute what loops can, too", true};
  Value<bool> attentionCalls{*this, "attention-calls",
                             "on GPUs, attention is a call of its own"};
  Value<std::string> mixedPrecision{
      *this, "mixed-precision",
      "type of products in models of f32: bf16 or f16; empty: f32"};
};
extern const Phase<OptimizeOptions> kOptimize;

/// What decides which ops are computed together. Several phases have it.
struct FuseOptions : PhaseOptions {
  Value<bool> reference{*this, "reference", "each op is computed by itself"};
  Value<bool> winograd{*this, "winograd",
                       "large convolutions of 3x3 windows by Winograd's method",
                       true};
  Value<bool> libraryCalls{*this, "library-calls",
                           "libraries compute what loops can, too", true};
};

struct ShardOptions : mlir::PassPipelineOptions<ShardOptions>, FuseOptions {
  Value<std::string> file{*this, "file", "partition file (YAML)"};
  Value<bool> explain{*this, "explain",
                      "remarks about collectives, and what spares them"};
  Value<std::string> expose{
      *this, "expose",
      "glob over nodes whose results become outputs, where kernels and calls "
      "make them"};
};
extern const Phase<ShardOptions> kShard;

struct DecideOptions : mlir::PassPipelineOptions<DecideOptions>, PhaseOptions {
  Value<std::string> file{*this, "file", "partition file (YAML)"};
  Value<int> devices{*this, "devices",
                     "number of devices along the axis \"stage\"; 0: what the "
                     "file or the mesh says"};
  Value<int> microBatches{*this, "micro-batches",
                          "of a step; 0: what the file says"};
  Value<int> stages{*this, "stages",
                    "that the planner cuts; 0: as the schedule wants"};
  Value<std::string> schedule{*this, "schedule",
                              "its name, or a file of orders; empty: what the "
                              "file says"};
  Value<int64_t> memory{*this, "memory",
                        "bytes that a device has room for; 0: what the file "
                        "says"};
  Value<int> memoryTry{*this, "memory-try",
                       "0: the fastest stages; from 1 on: those that need less "
                       "memory each time"};
  Value<bool> wholeNodes{*this, "whole-nodes",
                         "move each node to one stage, so that annotations can "
                         "say it"};
  Value<std::string> emitFile{*this, "emit-file",
                              "where to write the whole decision"};
};
extern const Phase<DecideOptions> kDecide;

struct CutOptions : mlir::PassPipelineOptions<CutOptions>, FuseOptions {
  Value<std::string> target{*this, "target",
                            "kind of the devices, if they are of one kind"};
  Value<std::string> recompute{*this, "recompute",
                               "what gradients compute again; empty: nothing"};
  Texts recomputeNodes{*this, "recompute-nodes",
                       "globs of nodes that gradients compute again"};
};
extern const Phase<CutOptions> kCut;

struct LowerOptions : mlir::PassPipelineOptions<LowerOptions>, PhaseOptions {
  Value<bool> reference{*this, "reference", "kernels are scalar loops"};
};
extern const Phase<LowerOptions> kLower;

struct PlanOptions : mlir::PassPipelineOptions<PlanOptions>, PhaseOptions {
  Value<int64_t> workspace{*this, "workspace",
                           "MiB of scratch that a library call has on each "
                           "core; 0: as usual"};
};
extern const Phase<PlanOptions> kPlan;

/// What a phase runs that is a pass itself.
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"

/// What is computed together is decided, of a model as it will be computed.
void addClusterPasses(mlir::OpPassManager &pm, const FuseOptions &options,
                      fuse::FusePlace place);

/// Makes each phase a flag of partita-opt.
void registerPhases();

/// Prints their names in order, each with a line of what it does.
void printPhases(llvm::raw_ostream &os);

} // namespace partita::passes

#endif // PARTITA_COMPILER_PASSES_PHASES_H

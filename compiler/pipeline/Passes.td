//===- Passes.td - Partition, schedule and memory ------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PASSES_TD
#define PARTITA_COMPILER_PIPELINE_PASSES_TD

include "mlir/Pass/PassBase.td"

class ModelPass<string argument> : PassBase<argument, "::partita::ModelPass">;

def ExposeValuesPass : ModelPass<"expose-values"> {
  let summary = "Makes intermediate values outputs of the model, to compare them";
  let description = [{
    For every node that `nodes` matches, the value that it makes becomes a
    result with the name of its ONNX tensor. If ops are in clusters, only values
    that leave their cluster become results. So clusters, and with them all
    numbers, stay the same. A remark gives the number of the other values.

    With the module's `nn.nodes = ["a", "b"]` and `nn.node_outputs = ["x", "y"]`:

    ```mlir
    %0 = nn.exp %x : tensor<8xf32> loc("a")
    %1 = nn.tanh %0 : tensor<8xf32> loc("b")
    return %1
    // becomes
    return %1, %0  // with nn.name = "x"
    ```
  }];
  let options = [Option<"nodes", "nodes", "std::string", "\"*\"", "glob over node names">];
}

def CarryStatesPass : ModelPass<"nn-carry-states"> {
  let summary = "Keeps what a step leaves for the next one on the devices";
  let description = [{
    Inputs become states that begin with zeros, and the outputs that go with
    them their new values. Each micro-batch of a step has its own, and none is
    filled up: the module gets `dist.full_steps` and `dist.full_micro_batches`. Steps
    follow one another along dimension 0 of the other inputs and outputs, or
    where `nn.batch_axis` of the inputs says it. If one of them has no such
    dimension, the module gets `nn.mixes`.

    An output may be longer than its input in one dimension, as a cache with the
    new words behind it is: the state keeps the end. Where the output is a
    concatenation of the input and new entries, these are written over the oldest
    ones of a ring (`nn.ring_dim`, `nn.ring_place`), which no step moves.

    With `step-sequences=N` dimension 0 of states, and of what is fed, is that of N
    sequences. A last input of N booleans says of which of them a step is. The
    others keep their states.

    With `states=past=present`:

    ```mlir
    func.func @main(%x: tensor<2x8xf32> {nn.name = "x"}, %past: tensor<2x8xf32> {nn.name = "past"})
        -> (tensor<2x8xf32> {nn.name = "y"}, tensor<2x8xf32> {nn.name = "present"}) {
      %0 = nn.add %past, %x : tensor<2x8xf32>
      return %0, %0
    // becomes
    nn.weight state @past "past" : tensor<2x8xf32> = dense<0.0> : tensor<2x8xf32> {nn.role = "carried"}
    func.func @main(%x: tensor<2x8xf32> {nn.batch_axis = 0, nn.name = "x"})
        -> (tensor<2x8xf32> {nn.batch_axis = 0, nn.name = "y"}, tensor<2x8xf32> {nn.state = @past}) {
      %past = nn.parameter state @past {nn.carried} : tensor<2x8xf32>
    ```
  }];
  let options = [
    ListOption<"states", "states", "std::string", "INPUT=OUTPUT; a * in both stands for the same text">,
    Option<"sequences", "sequences", "int64_t", "1", "how many sequences have states of their own (dist.sequences)">,
    Option<"stepSequences", "step-sequences", "int64_t", "1", "of how many sequences a step is (dist.step_sequences)">
  ];
}

def DistAssignMeshPass : ModelPass<"dist-assign-mesh"> {
  let summary = "Writes the axes of the mesh of all devices into the model";
  let description = [{
    Sets `dist.axes`, and the number of devices along the axis "stage", from
    what is already set, a partition file and the options. `dist.axes` is only
    set if there are axes other than "stage". `reproducible` of the file sets
    `dist.reproducible`, `zero` sets `dist.zero`, and `fusion_bytes` sets
    `dist.fusion_bytes`. If devices are of several kinds, `dist.targets` names
    the target of those at each place along the axis "stage"; devices at one
    place must have the same.

    With `data-parallel=2`:

    ```mlir
    func.func @main(...)
    // becomes
    func.func @main(...) attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>]}
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "", "partition file (YAML)">,
    Option<"devices", "devices", "int", "0", "number of devices in all; 0: what the file says">,
    ListOption<"givenAxes", "axes", "std::string", "NAME=SIZE: the axes of the mesh, in order, as another plan has them">,
    Option<"dataParallel", "data-parallel", "int", "0", "replicas; 0: what the file says">,
    Option<"replicas", "replicas", "int", "0", "replicas that share a micro-batch; 0: what the file says">,
    Option<"tensorParallel", "tensor-parallel", "int", "0", "devices over which tensors are cut; 0: what the file says">,
    Option<"reproducible", "reproducible", "bool", "false", "no number may depend on how tensors are cut; false: what the file says">,
    Option<"zero", "zero", "int", "-1", "what replicas share of a training; -1: what the file says">,
    Option<"fusionBytes", "fusion-bytes", "int64_t", "-1", "of gradients that replicas add up at once, at most; -1: what the file says">,
    ListOption<"targets", "targets", "std::string", "the target of each device; none: what the file says, or all have that of the module">
  ];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistAssignBlocksPass : ModelPass<"dist-assign-blocks"> {
  let summary = "Writes the blocks of a partition file into the model";
  let description = [{
    Sets `dist.block` on the ops that the file's globs or begin blocks name. Ops
    that it does not name join the block of an op that they read from, or that
    reads them, with a remark. The file's stages, devices, schedule,
    micro-batches and memory become attributes of the function. Without a file
    only these attributes are set, from the options. The passes that follow
    decide everything that neither the file nor the options say.

    With `blocks: {B1: ["conv*"]}`:

    ```mlir
    %0 = nn.relu %x : tensor<8xf32> loc("conv1")
    // becomes
    %0 = nn.relu %x {dist.block = "B1"} : tensor<8xf32> loc("conv1")
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", "", "partition file (YAML)">,
    Option<"devices", "devices", "int", "0", "number of devices along the axis \"stage\"; 0: what the file or the mesh says">,
    Option<"microBatches", "micro-batches", "int", "0", "micro-batches of a step; 0: what the file says">,
    Option<"stages", "stages", "int", "0", "number of stages that the planner cuts; 0: as the schedule wants">,
    Option<"schedule", "schedule", "std::string", "", "name of a schedule, or a file of orders; empty: what the file says">,
    Option<"memory", "memory", "int64_t", "0", "bytes that a device has room for; 0: what the file says">
  ];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistAssignStagesPass : ModelPass<"dist-assign-stages"> {
  let summary = "Gives every op its stage";
  let description = [{
    Sets `dist.stage` on all ops that depend on the model's inputs, and
    `dist.block` where there is none. Stages come from blocks and the file's
    stages, or else from `dist.annotated_stages`. If there are neither, the
    planner chooses stages so that the slowest one is as fast as possible by the
    cost model. The first op of each cluster gets the cluster's predicted time
    (`dist.price`), which the plan reads. Ops of one cluster get one stage: a
    cluster that is cut by blocks goes to the stage of its heaviest op, with a
    remark. With `whole-nodes`, a node whose ops are in several stages goes to
    the stage of its heaviest op too; `dist.annotated_stages` says so. It is an
    error if stages depend on each other in a cycle; the error names the ops.

    ```mlir
    func.func @main(%x: tensor<8xf32>) attributes {dist.devices = array<i64: 0, 1>} {
      %0 = nn.exp %x : tensor<8xf32>
      %1 = nn.tanh %0 : tensor<8xf32>
    // becomes
      %0 = nn.exp %x {dist.block = "B0", dist.stage = 0 : i64} : tensor<8xf32>
      %1 = nn.tanh %0 {dist.block = "B1", dist.stage = 1 : i64} : tensor<8xf32>
    ```
  }];
  let options = [
    Option<"memoryTry", "memory-try", "int", "0", "0: the fastest stages; from 1 on: stages that need less memory each time, by estimate (Balance.h)">,
    Option<"wholeNodes", "whole-nodes", "bool", "false", "move each node to one stage, so that annotations can say it">
  ];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistChooseSchedulePass : ModelPass<"dist-choose-schedule"> {
  let summary = "Names the schedule, and the micro-batches of a step";
  let description = [{
    If no schedule is named, this takes the default one. If the number of
    micro-batches of a step is not given, it takes the schedule's default for
    the stages and devices that have work.

    ```mlir
    func.func @main(...) attributes {dist.devices = array<i64: 0, 1>, ...}
    // becomes
    func.func @main(...) attributes {..., dist.micro_batches = 4 : i64, dist.schedule = "fill_drain"}
    ```
  }];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistWritePartitionPass : ModelPass<"dist-write-partition"> {
  let summary = "Writes the whole decision as a partition file";
  let description = [{
    Changes nothing. Loading the file gives the same stages, devices, schedule,
    micro-batches and memory.
  }];
  let options = [Option<"file", "file", "std::string", "", "file to write; - for standard output">];
}

def DistRecomputePass : ModelPass<"dist-recompute"> {
  let summary = "Computes again for gradients what forward does not keep for them";
  let description = [{
    Of a model that is trained. Gradients read clones of forward's clusters
    (`dist.recomputed`), which read what is kept: as few bytes as possible. A
    clone has the ops and results of its cluster, so it is the same code, and no
    bit changes. `standard` repeats clusters without matrix products,
    convolutions, attention and recurrent layers. `full` keeps of each stage
    what enters it. Where gradients follow each forward at once (the last stage,
    and one device), the stage is cut into segments, and what enters each is
    kept. What adds to sums over micro-batches is not repeated. The attribute
    `dist.recomputation` of the function says what that saves and costs.

    ```mlir
    %1 = nn.tanh %0 {dist.stage = 0 : i64, nn.cluster = #nn.cluster<0, kernel>}
    // ... a gradient reads %1
    // becomes
    %1 = nn.tanh %0 {dist.stage = 0 : i64, nn.cluster = #nn.cluster<0, kernel>, nn.yielded = array<i64: 0>}
    %2 = nn.tanh %0 {dist.recomputed, dist.stage = 0 : i64, nn.cluster = #nn.cluster<1, kernel>, nn.yielded = array<i64: 0>}
    // ... a gradient reads %2
    ```
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"none\"", "none, standard or full">,
    ListOption<"nodes", "nodes", "std::string", "globs of nodes whose clusters may be repeated as well">
  ];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistFormStagesPass : ModelPass<"dist-form-stages"> {
  let summary = "Outlines ops by their stage, and makes transfers";
  let description = [{
    Ops of a stage move into a `dist.stage`. Ops that depend on weights only are
    repeated in each stage that uses them. A value that stages of another device
    use is transferred there once, directly from the stage that makes it. Inputs
    of the model go directly to the stages that read them.

    A state has one device: that of the stage which updates it, or which
    `dist.state_stages` says. What another device reads of it is transferred from
    that stage's prologue. Of what comes once a step, a stage has as many units
    as its dependences on others ask for; the second one is named "U0_2".

    ```mlir
    %0 = nn.exp %x {dist.stage = 0 : i64} : tensor<8xf32>
    %1 = nn.tanh %0 {dist.stage = 1 : i64} : tensor<8xf32>
    // becomes
    %0 = dist.stage "F0" 0 on @d0 ... (%x) { nn.exp }
    %t = dist.transfer %0 reason "..."
    %1 = dist.stage "F1" 1 on @d1 ... (%t) { nn.tanh }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "", "kind of the devices (default: cpu); `dist.targets` says it where they are of several">
  ];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistPriceStagesPass : ModelPass<"dist-price-stages"> {
  let summary = "Prices the clusters of stages with targets of their own";
  let description = [{
    What is computed together was decided by the backend of the module, and
    anew, by `--fuse-clusters`, in stages with a `plan.target`. There the
    predicted times of clusters (`dist.price`) are written anew as well, by the
    machine model of that target.
  }];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def PlanGroupKernelsPass : ModelPass<"plan-group-kernels"> {
  let summary = "Starts small kernels together that do not wait for each other";
  let description = [{
    Clusters whose kernels the backend wants to start together become one
    cluster, at the place of the last. Nothing between them needs any of them;
    what is not a cluster (a collective) stays between those before it and those
    behind. A group computes what its members do, to the last bit.

    ```mlir
    %a = nn.cluster kernel (...) {...} {lowering = #plan.kernel<"k0_relu", ..., launch = [2, 128]>}
    %b = nn.cluster kernel (...) {...} {lowering = #plan.kernel<"k1_tanh", ..., launch = [3, 128]>}
    ```
    becomes
    ```mlir
    %ab:2 = nn.cluster kernel (...) {...} {lowering = #plan.kernel<"g0_x2_relu", ..., launch = [5, 128]>}
    ```
  }];
}

def PlanBuildPass : ModelPass<"plan-build"> {
  let summary = "Schedules stages: the plan dialect, without offsets in memory";
  let description = [{
    Every stage becomes a unit. The part of its clusters that depends on weights
    only becomes the load program of its device. Units are scheduled on all
    devices, transfers become channels, and values become slots. The function
    and its stages are erased.

    The gradients that replicas add up stay where they are. Small ones form
    buckets (`dist.fusion_bytes`): a slot joins them, and one collective adds
    all up. Collectives start as soon as their gradients are complete, and
    updates follow in that order.
  }];
  let dependentDialects = ["::partita::plan::PlanDialect"];
}

def PlanPlacePass : Pass<"plan-place", "::mlir::ModuleOp"> {
  let summary = "Assigns offsets in memory to the slots of a plan";
  let description = [{
    A slot that is needed on several micro-batches at the same time is placed in
    a frame with as many copies. A result takes over the bytes of an operand if
    the lowering allows it and the operand has no later use. If a call
    accumulates into an operand that must keep its bytes, the operand is copied
    first. Unused slots are erased.
  }];
}

def PlanReserveMemoryPass : Pass<"plan-reserve-memory", "::mlir::ModuleOp"> {
  let summary = "Computes the bytes that devices hold besides their arenas";
  let description = [{
    Sets the bytes of parameters that units read in their plain layout, of
    parameters that a library reorders, and of the library's scratch on each
    core.
  }];
  let options = [
    Option<"workspace", "workspace", "int64_t", "1048576",
           "Bytes of scratch that a library call has on each core">
  ];
}

def PlanCheckMemoryPass : Pass<"plan-check-memory", "::mlir::ModuleOp"> {
  let summary = "Checks that every device has enough memory for its part of a plan";
  let description = [{
    Changes nothing. `dist.memory` of `plan.model` says how many bytes a device
    has. If the planned peak of a device is larger, the error names the device,
    the action at which its arena is fullest, and the largest tensors at that
    action.
  }];
  let options = [Option<"advice", "advice", "std::string", "", "what would fit, for the message">];
}

def PlanVerifySchedulePass : Pass<"plan-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Proves that a plan finishes and uses its buffers correctly";
  let description = [{
    Runs the programs of all devices symbolically, and changes nothing. It is an
    error if the plan deadlocks, or reads or writes bytes at a wrong time. The
    error shows the shortest cycle of waits, or the wrong action.
  }];
}

#endif // PARTITA_COMPILER_PIPELINE_PASSES_TD

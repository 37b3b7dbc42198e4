//===- Passes.td - Tensors over meshes -----------------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SHARD_PASSES_TD
#define PARTITA_COMPILER_SHARD_PASSES_TD

include "mlir/Pass/PassBase.td"

class ShardPass<string flag> : PassBase<flag, "::partita::ModelPass"> {
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistFormReplicasPass : ShardPass<"dist-form-replicas"> {
  let summary = "Takes the model for the step of one replica";
  let description = [{
    Moves the body of the model's function into a `dist.replicate`, with as many
    replicas as the axis "replica" has devices. Inputs and outputs with a batch
    axis (`nn.batch_axis`) become those of all replicas together. Does nothing
    if there is no such axis and no placeholder, or if the function already has
    a `dist.replicate`.

    With an axis "replica" of 2 devices:

    ```mlir
    func.func @main(%x: tensor<4x8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<4x8xf32> {nn.batch_axis = 0 : i64}) {
      %0 = nn.relu %x : tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    // becomes
    func.func @main(%x: tensor<8x8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<8x8xf32> {nn.batch_axis = 0 : i64}) {
      %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<8x8xf32>) -> tensor<8x8xf32> {
      ^bb0(%a: tensor<4x8xf32>):
        %1 = nn.relu %a : tensor<4x8xf32>
        dist.yield %1 : tensor<4x8xf32>
      }
      return %0 : tensor<8x8xf32>
    }
    ```
  }];
}

def DistConnectReplicasPass : ShardPass<"dist-connect-replicas"> {
  let summary = "Puts collectives in the place of the placeholders of replicas";
  let description = [{
    Compares the placeholders of all replicas of a `dist.replicate`: the first of
    each, the second, and so on, must be of the same kind and type. Each
    mismatch is an error that names both nodes. All replicas must compute the
    same, since one program serves them. An output that is not dealt out must be
    the same on all.

    Then the function computes what one replica does: it takes its part of the
    operands, placeholders become collectives along the axis "replica", and
    results are gathered. The module gets `dist.full_micro_batches` if there
    were placeholders.

    ```mlir
    %y = dist.replicate 2 (%x) dims [0] results [0] : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      %0 = dist.replica.all_reduce sum %a : tensor<4x4xf32>
      dist.yield %0 : tensor<4x4xf32>
    }
    // becomes
    %a = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<8x4xf32> -> tensor<4x4xf32>
    %0 = dist.all_reduce sum %a axes ["replica"] reason "..." : tensor<4x4xf32>
    %y = dist.all_gather %0 dim 0 blocks 1 axes ["replica"] reason "..." : tensor<4x4xf32> -> tensor<8x4xf32>
    ```
  }];
}

def DistReadAnnotationsPass : Pass<"dist-read-annotations", "::mlir::ModuleOp"> {
  let summary = "Reads the mesh, stages and shardings that the model itself says";
  let description = [{
    `dist.annotations` of the module has ONNX's annotations as they stand at the
    nodes (dialects/dist/Annotations.h). Devices of a stage, in the order of
    their numbers, and the parts that each has of the tensors, give the axes.
    Weights, inputs and results of nodes get `dist.sharding`, also where they
    are whole; the function gets `dist.annotated_stages`. It is an error if the tensors do
    not fit one mesh. What cannot be taken is a remark at the node.

    ```mlir
    module attributes {dist.annotations = {configuration = "two", devices = 2 : i64, nodes = [
        {node = "fc", stage = 0 : i64, tensors = [
          {name = "w", weight = "w", shape = array<i64: 8, 16>,
           dims = [{dim = 1 : i64, sizes = array<i64: 16>, parts = array<i64: 2>} ],
           devices = [array<i64: 0>, array<i64: 1>]} ]} ]}} {
      func.func @main(...)
        %w = nn.parameter @w : tensor<8x16xf32>
    // becomes
    module {
      func.func @main(...) attributes {dist.axes = [#dist.axis<"stage" = 1>, #dist.axis<"tensor" = 2>], ...}
        %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {"tensor"} ]>} : tensor<8x16xf32>
    ```
  }];
  let dependentDialects = ["::partita::dist::DistDialect"];
}

def DistSeedPass : ShardPass<"dist-seed"> {
  let summary = "Writes the shardings of a partition file on weights and inputs";
  let description = [{
    Sets `dist.sharding` on the parameters and arguments that the file's globs
    match. It is an error if a glob matches nothing, if the number of dimensions
    differs, or if a dimension cannot be cut in that way.

    With `shard: {"w*": [tensor, null]}`:

    ```mlir
    %w = nn.parameter @w1 : tensor<8x16xf32>
    // becomes
    %w = nn.parameter @w1 {dist.sharding = #dist.sharding<[{"tensor"}, {} ]>} : tensor<8x16xf32>
    ```
  }];
  let options = [Option<"file", "file", "std::string", "", "partition file (YAML)">];
}

def DistChooseShardingsPass : ShardPass<"dist-choose-shardings"> {
  let summary = "Chooses how weights are cut, by the cost model";
  let description = [{
    Handles each axis along which nothing is cut yet. It visits ops with weights
    in their order. It tries each way to cut the weight, propagates it, and
    keeps it if the cost model says that the model becomes faster. So if the
    first of two layers is cut along its outputs, the second is cut along the
    dimension it sums over. With `dist.shards`, which another plan of the
    artifact has left, weights are cut as it says.
  }];
}

def DistCutStatesPass : ShardPass<"dist-cut-states"> {
  let summary = "Cuts what an optimizer keeps over replicas";
  let description = [{
    Replicas of a training (the axis "data") have the same states. With
    `dist.zero` of 1, each of them has its part of what an optimizer keeps of a parameter,
    and updates that part of the parameter. Gradients are summed part by part
    then, and the new parameters are gathered. With 2 each adds up its part of a
    gradient, which is joined in each micro-batch. With 3 each has its part of a
    parameter, and those that read it gather it; so a step has all of its
    micro-batches, in a plan that learns nothing as well. Running statistics
    stay as they are, and so do the smallest parameters, which have at most a
    hundredth of all elements together.

    With `dist.zero = 1` and an axis "data" of 2 devices:

    ```mlir
    %m = nn.parameter state @w.momentum : tensor<8x16xf32>
    // becomes
    %m = nn.parameter state @w.momentum {dist.sharding = #dist.sharding<[{"data"}, {} ]>} : tensor<8x16xf32>
    ```
  }];
}

def DistPropagatePass : ShardPass<"dist-propagate"> {
  let summary = "Propagates the cuts of tensors through the graph";
  let description = [{
    Propagates cuts through the factors of each op (`ShardableOpInterface`), to
    a fixed point. Existing cuts do not change. With `dist.reproducible`, what
    is computed together is cut together or gets `dist.whole`.

    ```mlir
    %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {"tensor"} ]>} : tensor<8x16xf32>
    %0 = nn.dot %x, %w ... -> tensor<4x16xf32>
    // becomes
    %0 = nn.dot %x, %w ... {dist.sharding = #dist.sharding<[{}, {"tensor"} ]>} -> tensor<4x16xf32>
    ```
  }];
  let dependentDialects = ["::partita::dist::DistDialect", "::partita::nn::NNDialect", "::partita::plan::PlanDialect"];
}

def DistExplainCollectivesPass : ShardPass<"dist-explain-collectives"> {
  let summary = "Says which collectives the cuts need, and what would spare each";
  let description = [{
    A remark for each tensor that needs collectives, at the node whose result is
    joined, exchanged or gathered. It names the smallest change that spares the collective, if there
    is one: another cut of a weight or input near it, with which the collective
    is gone and no other one is there. Each such change is propagated before it
    is named. Of many collectives only the first ones are tried.

    With `%w2` cut along dimension 0, over which `fc2` sums:

    ```
    remark: partial sums of 'fc2' are joined: each device sends 4.00 KiB a
    micro-batch, predicted 0.87 us; to spare that, keep 'w2' whole, ...
    ```
  }];
}

def DistReshardPass : ShardPass<"dist-reshard"> {
  let summary = "Inserts reshards where a tensor is needed with another cut";
  let description = [{
    Inserts `dist.reshard` where an operand is not cut as the factors of its op
    are. If a factor that is summed over is cut, the result is partial: a
    `dist.reshard` joins it, and is its only reader. Values that depend on
    weights only need no `dist.reshard`: each reader's part is computed from its
    parts of the weights.

    ```mlir
    %0 = nn.dot %x, %w ... contract [1] x [0] {...} // both cut in what is contracted
    // becomes
    %0 = nn.dot %x, %w ... {dist.sharding = #dist.sharding<[{}, {} ] partial [#dist.partial<"tensor" sum>]>}
    %1 = dist.reshard %0 reason "..." : tensor<4x16xf32>
    ```
  }];
}

def DistDelaySumsPass : ShardPass<"dist-delay-sums"> {
  let summary = "Joins partial sums where there are fewer of them";
  let description = [{
    A `dist.reshard` that joins partial sums moves behind ops that are linear, if
    what these make is smaller: the weighted sum of several experts' results is
    joined, and not these results. In between are reshapes and
    transposes, factors and divisors that all devices have, and sums; all of
    floats, and with one reader.

    ```mlir
    %1 = dist.reshard %0 reason "..." : tensor<4x2x16xf32> // joins partial sums
    %2 = nn.mul %1, %w : tensor<4x2x16xf32>
    %3 = nn.reduce sum %2 [1] : tensor<4x2x16xf32> -> tensor<4x16xf32>
    // becomes
    %1 = nn.mul %0, %w {dist.sharding = #dist.sharding<[{}, {}, {} ] partial [#dist.partial<"tensor" sum>]>} : tensor<4x2x16xf32>
    %2 = nn.reduce sum %1 [1] {dist.sharding = #dist.sharding<[{}, {} ] partial [#dist.partial<"tensor" sum>]>} : tensor<4x2x16xf32> -> tensor<4x16xf32>
    %3 = dist.reshard %2 reason "..." : tensor<4x16xf32>
    ```
  }];
}

def DistLocalizePass : ShardPass<"dist-localize"> {
  let summary = "Rewrites the model to the part that one device computes";
  let description = [{
    Replaces each tensor by the part that one device has. `dist.reshard` becomes
    the fastest sequence of collectives, by the rates and latencies of the
    machine. Weights are read by coordinate (`dist.shard`). The model's
    inputs and outputs stay whole.

    ```mlir
    %1 = dist.reshard %0 reason "..." : tensor<4x16xf32> // joins partial sums
    // becomes
    %1 = dist.all_reduce sum %0 axes ["tensor"] reason "..." : tensor<4x16xf32>
    ```
  }];
}

def DistCombineCollectivesPass : ShardPass<"dist-combine-collectives"> {
  let summary = "Combines small all_reduces that follow one another";
  let description = [{
    Tensors of several all_reduces are joined together, if that is faster by
    the cost model: one latency instead of several, but a copy. The all_reduces
    have the same reduction, axes and element type, no other collective is
    between them, and none depends on another. All are computed once a step, or
    all in each micro-batch; where there are several stages, which are decided
    later, they are of one node. Each element is combined as before, so no bit
    changes. Gradients of replicas stay apart: `--plan-build`
    joins them without a copy.

    Numbers that are added to one another, such as the squares of all gradients,
    are added up by all devices once, as a sum; with `dist.reproducible` they
    are not, since bits may change.

    ```mlir
    %2 = dist.all_reduce sum %0 axes ["tensor"] reason "a" : tensor<2x8xf32>
    %3 = dist.all_reduce sum %1 axes ["tensor"] reason "b" : tensor<8xf32>
    // becomes
    %4 = nn.concat %a, %b dim 0 : (tensor<16xf32>, tensor<8xf32>) -> tensor<24xf32>  // reshaped
    %5 = dist.all_reduce sum %4 axes ["tensor"] reason "a; b" : tensor<24xf32>
    // and a slice of it for each, reshaped
    ```
  }];
}

#endif // PARTITA_COMPILER_SHARD_PASSES_TD

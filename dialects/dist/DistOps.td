//===- DistOps.td - Where a model is computed ----------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_DIST_DISTOPS_TD
#define PARTITA_DIALECTS_DIST_DISTOPS_TD

include "dialects/dist/DistEnums.td"
include "dialects/dist/DistInterfaces.td"
include "dialects/nn/NNBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::partita::dist";
  let summary = "Where a model is computed: meshes, blocks, stages, transfers";
  let description = [{
    Discardable attributes of this dialect:

    | attribute | on | meaning |
    | --- | --- | --- |
    | `dist.annotated_stages` | the model's function | stages that the ONNX model itself names, a dictionary by node |
    | `dist.block` | any op | the user's or the planner's block it belongs to |
    | `dist.stage` | any op | number of the stage that computes it |
    | `dist.devices` | the model's function | device of each stage |
    | `dist.micro_batches` | the same | micro-batches of one step |
    | `dist.schedule` | the same | order of units: a name of `compiler/schedule`, e.g. `fill_drain` |
    | `dist.sums` | `dist.stage` | pairs: a result, and the input that is its accumulator |
    | `dist.sharding` | an op with one result, an argument of the model's function | a `#dist.sharding`: how the tensor is cut; without it, it is whole |
    | `dist.full_micro_batches` | the module | samples are combined with each other: no micro-batch may be filled up with copies |
    | `dist.full_steps` | the module | a step has all of its micro-batches |
    | `dist.sequences` | the module | so many sequences, or groups of `dist.step_sequences`, have carried states of their own; a step is of one of them |
    | `dist.step_sequences` | the module | a step is of so many sequences; the last argument says which of them there are |
    | `dist.whole` | any op | every device computes all of it |
    | `dist.reproducible` | the model's function | no number depends on how tensors are cut |
    | `dist.zero` | the model's function | 1: replicas of a training share what its optimizer keeps |
    | `dist.fusion_bytes` | the model's function | how many bytes of gradients replicas add up at once, at most; 0: each parameter's alone; absent: by the cost model |
    | `dist.axes` | the model's function | axes of the mesh of all devices, outermost first, with the axis "stage"; without it that is the only one |
    | `dist.device_count` | the model's function | number of devices along the axis "stage" |
    | `dist.targets` | the model's function | target of the devices at each place along the axis "stage", if they are of several kinds |
    | `dist.machine` | the module | machine file (`partita-run --calibrate`) by which times are predicted |
    | `dist.threads` | the module | cores of a device; without it, an equal share |
    | `dist.memory` | the model's function, `plan.model` | bytes that a device has room for |
    | `dist.stage_count` | the model's function | number of stages that the planner cuts |
    | `dist.stage_blocks` | the model's function | blocks of each stage, arrays of strings |
    | `dist.block_order` | the model's function | blocks in their order, if no stages are named |
    | `dist.auto_stage` | the model's function | how blocks become stages: `same_as_device` or `auto_increment` |
    | `dist.state_stages` | the model's function | stages of states as another plan of the artifact has them, a dictionary by weight |
    | `dist.orders` | the model's function | text of the file of orders whose path is `dist.schedule` |
    | `dist.alone_ns` | the model's function | what one device would take for the whole model: `[ns of a micro-batch, ns of a step besides]` |
    | `dist.price` | the first op of a cluster; the cluster | its predicted time: `[ns, ns by rates alone]` |
    | `dist.work_key` | the same | key of its work, if a machine was measured |
    | `dist.recomputed` | an op, its cluster | it computes again, for gradients, what forward has computed |
    | `dist.recomputation` | the model's function, `plan.model` | what that saves and costs in a micro-batch |
    | `dist.shards` | the model's function | how weights and inputs are cut, a dictionary of shardings by name |
    | `dist.own` | any op | its result is each replica's own; what is meant is the sum over replicas |
    | `dist.joined` | `nn.sum_micro_batches` | what it sums is joined over replicas in each micro-batch |
    | `dist.annotations` | the module | how ONNX nodes are cut, for `--emit-onnx` |
    | `dist.numbered_nodes` | the module | all nodes with their numbers in the file, and the tensors that may be annotated |
    | `dist.result_shards` | the model's function | how results of nodes are cut, a dictionary of shardings |
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::partita::nn::NNDialect"];
}

def Dist_AxisAttr : AttrDef<Dist_Dialect, "Axis"> {
  let mnemonic = "axis";
  let summary = "an axis of a mesh";
  let description = [{
    Three names have a meaning. Devices along "data" are replicas, and
    micro-batches are dealt out to them. Devices along "replica" are replicas
    that share each micro-batch (`dist.replicate`). Devices along "stage" have
    different stages.

    ```mlir
    #dist.axis<"data" = 2>
    ```
  }];
  let parameters = (ins StringRefParameter<"its name">:$name, "int64_t":$size);
  let assemblyFormat = "`<` $name `=` $size `>`";
}

def Dist_DimAttr : AttrDef<Dist_Dialect, "Dim"> {
  let mnemonic = "dim";
  let summary = "how a dimension of a tensor is cut";
  let description = [{
    The dimension consists of `blocks` equal blocks. Each is cut along the axes,
    the first one outermost. Without axes the dimension is whole. A block that
    does not divide is cut into parts that are rounded up to multiples of
    `alignment` elements: 3 heads of 4 elements are cut into 2 parts of 8.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::mlir::StringAttr">:$axes,
    DefaultValuedParameter<"int64_t", "1">:$blocks,
    DefaultValuedParameter<"int64_t", "1">:$alignment);
  let hasCustomAssemblyFormat = 1;
}

def Dist_PartialAttr : AttrDef<Dist_Dialect, "Partial"> {
  let mnemonic = "partial";
  let summary = "devices along an axis have parts of a sum, or of another reduction";
  let parameters = (ins StringRefParameter<"its name">:$axis, EnumParameter<NN_ReduceKind>:$reduction);
  let assemblyFormat = "`<` $axis $reduction `>`";
}

def Dist_ShardingAttr : AttrDef<Dist_Dialect, "Sharding"> {
  let mnemonic = "sharding";
  let summary = "how a tensor is cut over the devices of a mesh";
  let description = [{
    The attribute has a list of axes for each dimension. A dimension may consist
    of several equal blocks that are cut one by one (`blocks`): a weight that
    concatenates queries, keys and values has 3. `partial`: devices along these
    axes hold parts of a sum, a product, a maximum or a minimum. Only a
    `dist.reshard` may read such a tensor, or linear ops on the way to one.

    ```mlir
    #dist.sharding<[{"tensor"}, {} ]>
    #dist.sharding<[{}, {"tensor" blocks 3} ]>
    #dist.sharding<[{}, {"tensor" blocks 3 alignment 4} ]>
    #dist.sharding<[{}, {} ] partial [#dist.partial<"tensor" sum>]>
    ```
  }];
  let parameters = (ins OptionalArrayRefParameter<"::partita::dist::DimAttr">:$dims,
    OptionalArrayRefParameter<"::partita::dist::PartialAttr">:$partial);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Whether every device has the whole tensor.
    bool isWhole() const;
  }];
}

def Dist_AxesAttr : TypedArrayAttrBase<Dist_AxisAttr, "axes of a mesh, outermost first">;

def Dist_PlacedType : TypeDef<Dist_Dialect, "Placed"> {
  let mnemonic = "placed";
  let summary = "a tensor that is placed on a mesh";
  let description = [{
    The same tensor has different types on different meshes. So it is a type
    error to read a value on another mesh without a transfer.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor, "::mlir::FlatSymbolRefAttr":$mesh);
  let assemblyFormat = "`<` $tensor `,` $mesh `>`";
}

def Dist_Value : AnyTypeOf<[AnyStaticShapeTensor, Dist_PlacedType], "tensor of the host or placed tensor">;

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "devices that compute together";
  let description = [{
    Constraints:
    * (C1) `devices` is not empty; its numbers are distinct and not negative.
    * (C2) the sizes of `axes` are at least 1, and multiply to the number of devices; names are distinct.

    `devices` are in row-major order of their coordinates along `axes`. Without
    axes there is one device. `kind` is a kind of device of the runtime (see
    `runtime/device`). Without it the devices are CPUs.

    ```mlir
    dist.mesh @d0 [0]
    dist.mesh @d1 [1] kind "remote-cpu"
    dist.mesh @d2 [2, 3] axes [#dist.axis<"data" = 2>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$devices, OptionalAttr<Dist_AxesAttr>:$axes,
    OptionalAttr<StrAttr>:$kind);
  let assemblyFormat = "$sym_name $devices (`axes` $axes^)? (`kind` $kind^)? attr-dict";
  let hasVerifier = 1;
}

def Dist_PhaseAttr : EnumAttr<Dist_Dialect, Dist_Phase, "phase">;

def Dist_StageOp : Dist_Op<"stage", [IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">,
    RecursiveMemoryEffects, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the part of a model that one mesh computes as a unit";
  let description = [{
    Operands are inputs of the model (plain tensors: the host feeds them) or
    values placed on the stage's mesh. Inside, values are plain tensors.

    A stage of a model that is trained has an op for each of its phases.
    `forward` and `backward` are computed for each micro-batch. The last stage
    has no `backward`: its gradients follow at once. Some schedules split
    `backward` into `input_gradients`, for which other stages wait, and
    `weight_gradients`; the last stage has these too then. The `prologue` comes
    before the first micro-batch of a step, and the `update` after the last.

    Constraints:
    * (C1) `mesh` is a mesh of the module.
    * (C2) placed operands, and all results, are placed on `mesh`.
    * (C3) the block's arguments have the tensor types of the operands.
    * (C4) the yielded values have the tensor types of the results.

    ```mlir
    %y = dist.stage "F0" 0 on @d0 blocks ["B1"] (%x) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0> {
    ^bb0(%a: tensor<8xf32>):
      %r = nn.relu %a : tensor<8xf32>
      dist.yield %r : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$stage_name, I64Attr:$stage, FlatSymbolRefAttr:$mesh,
    StrArrayAttr:$blocks, Variadic<Dist_Value>:$inputs,
    DefaultValuedAttr<Dist_PhaseAttr, "::partita::dist::Phase::forward">:$phase);
  let results = (outs Variadic<Dist_PlacedType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $stage_name $stage (`phase` $phase^)? `on` $mesh `blocks` $blocks `(` $inputs `)` attr-dict-with-keyword
    `:` functional-type($inputs, $outputs) $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    YieldOp getYield();
  }];
}

def Dist_YieldOp : Dist_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["StageOp", "ReplicateOp"]>]> {
  let summary = "the results of a stage or of a replica";
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Dist_TransferOp : Dist_Op<"transfer", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "transfers a value to another mesh";
  let description = [{
    `reason` says in words why the value is transferred.

    Constraints:
    * (C1) `value` and `result` have the same tensor type.
    * (C2) they are placed on different meshes of the module.

    ```mlir
    %t = dist.transfer %y reason "F0 makes 'relu1', F1 reads it"
      : !dist.placed<tensor<8xf32>, @d0> -> !dist.placed<tensor<8xf32>, @d1>
    ```
  }];
  let arguments = (ins Dist_PlacedType:$value, StrAttr:$reason);
  let results = (outs Dist_PlacedType:$result);
  let assemblyFormat = "$value `reason` $reason attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Sharded tensors
//===----------------------------------------------------------------------===//

def Dist_ReshardOp : Dist_Op<"reshard", [Pure, AllTypesMatch<["x", "result"]>]> {
  let summary = "the same tensor, cut in another way";
  let description = [{
    The op's own `dist.sharding` says how the result is cut. `reason` says in
    words why the tensor must be cut in another way. If `x` is partial, the
    partial results are combined.

    ```mlir
    %1 = dist.reshard %0 reason "'fc2' sums over what is cut along tensor" {dist.sharding = #dist.sharding<[{}, {} ]>} : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, StrAttr:$reason);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$x `reason` $reason attr-dict `:` type($result)";
}

// Ops on the tensors of one device. Along further axes dimensions pass through,
// but for `dim`, along which elements go to other devices.
class Dist_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat([Pure, NN_EveryMicroBatch, DeclareOpInterfaceMethods<Dist_CollectiveOpInterface>,
        DeclareOpInterfaceMethods<Dist_DifferentiableOpInterface>, DeclareOpInterfaceMethods<NN_ShardableOpInterface>], traits)> {
  let results = (outs AnyStaticShapeTensor:$result);
  code kindDeclaration = "static constexpr ::partita::abi::CollectiveKind kCollectiveKind = ::partita::abi::CollectiveKind::" # mnemonic # ";";
  let extraClassDeclaration = kindDeclaration;
}

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce", [AllTypesMatch<["x", "result"]>]> {
  let summary = "combines the tensors of several devices; each gets the whole result";
  let description = [{
    The tensors are combined in the order of the devices, so that all devices
    get the same bits.

    ```mlir
    %1 = dist.all_reduce sum %0 axes ["tensor"] reason "..." : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, AnyStaticShapeTensor:$x, StrArrayAttr:$axes, StrAttr:$reason);
  let assemblyFormat = "`` $kind $x `axes` $axes `reason` $reason attr-dict `:` type($result)";
}

def Dist_ReduceScatterOp : Dist_CollectiveOp<"reduce_scatter"> {
  let summary = "combines the tensors of several devices; each gets its part of the result";
  let description = [{
    Constraints:
    * (C1) `dim` is a dimension; its size in `x` is that in `result` times the number of devices, and a multiple of `blocks`; the others are equal.

    ```mlir
    %1 = dist.reduce_scatter sum %0 dim 1 blocks 1 axes ["tensor"] reason "..." : tensor<8x16xf32> -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, AnyStaticShapeTensor:$x, I64Attr:$dim, I64Attr:$blocks,
    StrArrayAttr:$axes, StrAttr:$reason);
  let assemblyFormat = [{
    `` $kind $x `dim` $dim `blocks` $blocks `axes` $axes `reason` $reason attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather"> {
  let summary = "concatenates the parts of several devices";
  let description = [{
    Constraints:
    * (C1) `dim` is a dimension; its size in `result` is that in `x` times the number of devices, and a multiple of `blocks`; the others are equal.

    ```mlir
    %1 = dist.all_gather %0 dim 1 blocks 1 axes ["tensor"] reason "..." : tensor<8x8xf32> -> tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, I64Attr:$dim, I64Attr:$blocks, StrArrayAttr:$axes, StrAttr:$reason);
  let assemblyFormat = [{
    $x `dim` $dim `blocks` $blocks `axes` $axes `reason` $reason attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all"> {
  let summary = "each device gives each device a part of its tensor";
  let description = [{
    `x` is cut into equal parts along `dim`, one for each device. The result has
    one dimension more, the first: its element r is what device r gave.

        device 0    a0 a1        a0 b0
        device 1    b0 b1   ->   a1 b1

    Constraints:
    * (C1) `dim` is a dimension of `x`, and `result` has one dimension more than `x`. The size of `dim` in `x` is that in `result` times the number of devices, and a multiple of `blocks`; the others are equal.

    ```mlir
    %1 = dist.all_to_all %0 dim 1 blocks 1 axes ["tensor"] reason "..." : tensor<4x16xf32> -> tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, I64Attr:$dim, I64Attr:$blocks, StrArrayAttr:$axes, StrAttr:$reason);
  let assemblyFormat = [{
    $x `dim` $dim `blocks` $blocks `axes` $axes `reason` $reason attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = kindDeclaration # [{
    /// The type of what one device gives another.
    ::mlir::RankedTensorType getPartType();
  }];
}

def Dist_BroadcastOp : Dist_CollectiveOp<"broadcast", [AllTypesMatch<["x", "result"]>]> {
  let summary = "one device's tensor, for all";
  let description = [{
        device 0    a        a
        device 1    b   ->   a        (root 0)

    `root` is the position of that device in its group.

    ```mlir
    %1 = dist.broadcast %0 root 0 axes ["replica"] reason "..." : tensor<8x16xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, ConfinedAttr<I64Attr, [IntNonNegative]>:$root, StrArrayAttr:$axes,
    StrAttr:$reason);
  let assemblyFormat = "$x `root` $root `axes` $axes `reason` $reason attr-dict `:` type($result)";
}

def Dist_ShardOp : Dist_Op<"shard", [Pure, DeclareOpInterfaceMethods<Dist_DifferentiableOpInterface, ["givesWhole"]>,
    DeclareOpInterfaceMethods<NN_ShardableOpInterface>]> {
  let summary = "a device's own part of a tensor";
  let description = [{
    This needs no communication.

    Constraints:
    * (C1) `dim` is a dimension; its size in `x` is that in `result` times the number of devices, and a multiple of `blocks`; the others are equal.

    The parts of a block may be longer than it together. Elements beyond its end
    are 0.

    ```mlir
    %1 = dist.shard %0 dim 1 blocks 1 axes ["tensor"] : tensor<8x16xf32> -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, I64Attr:$dim, I64Attr:$blocks, StrArrayAttr:$axes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$x `dim` $dim `blocks` $blocks `axes` $axes attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    RowsAndPart getRowsAndPart();
  }];
}

// Their classes are above.
include "dialects/dist/DistReplicas.td"

#endif // PARTITA_DIALECTS_DIST_DISTOPS_TD

//===- DistReplicas.td - The step of one replica -------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A part of DistOps.td, which includes it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_DIST_DISTREPLICAS_TD
#define PARTITA_DIALECTS_DIST_DISTREPLICAS_TD

include "dialects/dist/DistEnums.td"

def Dist_ReplicateOp : Dist_Op<"replicate", [IsolatedFromAbove, RecursiveMemoryEffects]> {
  let summary = "the step of one replica, computed by all replicas";
  let description = [{
    TF-Replicator's in-graph replication. An operand whose entry in
    `argument_dims` is a dimension is dealt out along it: replica r of n has the
    r-th of n equal parts. With -1 all replicas have the whole operand. A result
    whose entry in `result_dims` is a dimension consists of the results of all
    replicas along it. With -1 it is the result of each of them, which must be
    the same on all.

    There is one region, which all replicas compute, or one for each replica.
    `dist.replica.*` ops in it are placeholders for what crosses replicas.

    Constraints:
    * (C1) there are 1 or `replicas` regions.
    * (C2) there is a dimension or -1 for each operand and result, and `replicas` divides the dimension's size.
    * (C3) each region's arguments have the types of one replica's parts of the operands.
    * (C4) each region yields one replica's parts of the results.

    ```mlir
    %y = dist.replicate 2 (%x, %s) dims [0, -1] results [0] : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4xf32>):
      ...
      %m = dist.replica.all_reduce mean %l : tensor<4xf32>
      ...
      dist.yield %r : tensor<4x4xf32>
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$replicas, Variadic<AnyStaticShapeTensor>:$inputs,
    DenseI64ArrayAttr:$argument_dims, DenseI64ArrayAttr:$result_dims);
  let results = (outs Variadic<AnyStaticShapeTensor>:$outputs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = [{
    $replicas `(` $inputs `)` `dims` $argument_dims `results` $result_dims attr-dict-with-keyword
    `:` functional-type($inputs, $outputs) $bodies
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of one replica's part of a tensor that is dealt out along `dim`,
    /// or, with -1, the type itself.
    ::mlir::RankedTensorType getPartType(::mlir::Type type, int64_t dim);
  }];
}

def Dist_PlaceholderReduceKindAttr : EnumAttr<Dist_Dialect, Dist_PlaceholderReduceKind, "placeholder_reduce_kind">;

// Ops on the tensors of one replica. `interface`: the methods of
// PlaceholderOpInterface that the op has itself.
class Dist_PlaceholderOp<string name, list<string> interface = [], list<Trait> traits = []>
    : Dist_Op<"replica." # name, !listconcat([Pure, NN_EveryMicroBatch,
        DeclareOpInterfaceMethods<Dist_PlaceholderOpInterface, interface>], traits)> {
  let results = (outs AnyStaticShapeTensor:$result);
}

def Dist_ReplicaAllReduceOp : Dist_PlaceholderOp<"all_reduce", [], [AllTypesMatch<["x", "result"]>]> {
  let summary = "placeholder: the tensors of all replicas, combined";
  let description = [{
    Each replica gets the whole result. Tensors are combined in the order of the
    replicas. A mean is the sum divided by the number of replicas.

    Constraints:
    * (C1) a mean is one of floats, and booleans only have a maximum (or) and a minimum (and).

    ```mlir
    %1 = dist.replica.all_reduce mean %0 : tensor<4xf32>
    ```
  }];
  let arguments = (ins Dist_PlaceholderReduceKindAttr:$kind, NN_NumberTensor:$x);
  let assemblyFormat = "`` $kind $x attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dist_ReplicaAllGatherOp : Dist_PlaceholderOp<"all_gather", ["getReplicaCount"]> {
  let summary = "placeholder: the tensors of all replicas, one after another";
  let description = [{
    Constraints:
    * (C1) `dim` is a dimension; its size in `result` is that in `x` times the number of replicas; the others are equal.

    ```mlir
    %1 = dist.replica.all_gather %0 dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, I64Attr:$dim);
  let assemblyFormat = "$x `dim` $dim attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_ReplicaBroadcastOp : Dist_PlaceholderOp<"broadcast", [], [AllTypesMatch<["x", "result"]>]> {
  let summary = "placeholder: the tensor of one replica, for all";
  let description = [{
    When replicas are connected, `root` must be one of them.

    ```mlir
    %1 = dist.replica.broadcast %0 root 0 : tensor<4xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, ConfinedAttr<I64Attr, [IntNonNegative]>:$root);
  let assemblyFormat = "$x `root` $root attr-dict `:` type($result)";
}

def Dist_ReplicaAllToAllOp : Dist_PlaceholderOp<"all_to_all", ["getReplicaCount", "isSameOnAllReplicas"]> {
  let summary = "placeholder: each replica gives each replica a part of its tensor";
  let description = [{
    `x` is cut along `split` into a part for each replica. What a replica gets
    follows one another along `concat`, in the order of the replicas.

    Constraints:
    * (C1) `split` and `concat` are dimensions of `x`, and `replicas` divides the size of `split`.
    * (C2) `result` is `x` with the size of `split` divided by `replicas`, and that of `concat` multiplied.

    ```mlir
    %1 = dist.replica.all_to_all %0 split 0 concat 1 replicas 2 : tensor<4x3x8xf32> -> tensor<2x6x8xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, ConfinedAttr<I64Attr, [IntNonNegative]>:$split,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$concat, ConfinedAttr<I64Attr, [IntPositive]>:$replicas);
  let assemblyFormat = "$x `split` $split `concat` $concat `replicas` $replicas attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_ReplicaShardOp : Dist_PlaceholderOp<"shard",
    ["getReplicaCount", "isSameOnAllReplicas", "communicates", "needsSameOperand"]> {
  let summary = "placeholder: a replica's own part of a tensor";
  let description = [{
    Replica r of n has the r-th of n equal parts. This needs no communication: of
    a weight, a device only reads its part. All replicas must have the same `x`.

    Constraints:
    * (C1) `dim` is a dimension; its size in `x` is that in `result` times the number of replicas; the others are equal.

    ```mlir
    %1 = dist.replica.shard %0 dim 0 : tensor<8x16xf32> -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$x, I64Attr:$dim);
  let assemblyFormat = "$x `dim` $dim attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

#endif // PARTITA_DIALECTS_DIST_DISTREPLICAS_TD

//===- NNShape.td - Ops that move elements -------------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNSHAPE_TD
#define PARTITA_DIALECTS_NN_NNSHAPE_TD

include "dialects/nn/NNBase.td"

class NN_ShapeOp<string mnemonic, list<Trait> traits = [], list<string> shardable = [], list<string> indexed = []>
    : NN_ValueOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<NN_IndexedOpInterface, indexed>], traits), shardable> {
  let hasVerifier = 1;
  let hasFolder = 1;
  let results = (outs NN_Tensor:$result);
}

class NN_PermutableShapeOp<string mnemonic, list<Trait> traits = [], list<string> methods = [], list<string> shardable = [],
                           list<string> indexed = []>
    : NN_ShapeOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<NN_PermutableOpInterface, methods>], traits), shardable, indexed>;

def NN_ReshapeOp : NN_ShapeOp<"reshape", [DeclareOpInterfaceMethods<NN_ViewOpInterface, ["getOperandLayout", "keepsElements"]>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    Constraints:
    * (C1) `x` and `result` have the same number of elements.
    * (C2) `x` and `result` have the same element type.

    Sharding: `([ij])->([i,j])`; sizes that have no common factors are replicated.

    ```mlir
    %r = nn.reshape %x : tensor<2x6xf32> -> tensor<3x4xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasCanonicalizer = 1;
}

def NN_TransposeOp : NN_ShapeOp<"transpose", [DeclareOpInterfaceMethods<NN_ViewOpInterface, ["getOperandLayout", "keepsElements"]>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "dimensions in another order";
  let description = [{
    `dim(result, i) = dim(x, permutation[i])`.

    Constraints:
    * (C1) `permutation` is a permutation of the dimensions of `x`.
    * (C2) the shape of `result` is that of `x`, permuted, of the same element type.

    Sharding: `([i,j,k])->([i,k,j])`.

    ```mlir
    %r = nn.transpose %x [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x) `->` type($result)";
  let hasCanonicalizer = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$permutation)>];
}

def NN_BroadcastOp : NN_ShapeOp<"broadcast", [DeclareOpInterfaceMethods<NN_ViewOpInterface>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "repeats elements along new dimensions and dimensions of size 1";
  let description = [{
    Dimension i of `x` becomes dimension `dims[i]` of `result`. If it has size 1,
    its element is repeated.

    Constraints:
    * (C1) `dims` has one entry per dimension of `x`, strictly increasing, each a dimension of `result`.
    * (C2) each dimension of `x` has size 1 or the size of its dimension of `result`.
    * (C3) `x` and `result` have the same element type.

    Sharding: `([j,1])->([i,j,k])`.

    ```mlir
    %r = nn.broadcast %bias [1] : tensor<4xf32> -> tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dims);
  let assemblyFormat = "$x $dims attr-dict `:` type($x) `->` type($result)";
  let hasCanonicalizer = 1;
}

def NN_SliceOp : NN_PermutableShapeOp<"slice", [DeclareOpInterfaceMethods<NN_ViewOpInterface>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], [], ["buildLocal"]> {
  let summary = "every stride-th element from start to limit, by dimension";
  let description = [{
    Constraints:
    * (C1) `starts`, `limits` and `strides` have one entry per dimension of `x`.
    * (C2) 0 <= start <= limit <= size, and stride >= 1.
    * (C3) the size of each dimension of `result` is ceil((limit - start) / stride), of the same element type.

    Sharding: `([i,j])->([i,k]) permutation={j,k}`, where i is taken whole. If the
    slice takes one of several equal parts, `([i,jk])->([i,k]) blocked={j}`; if
    it takes one of each few neighbours, `([i,kj])->([i,k]) replicated={j}`.

    ```mlir
    %r = nn.slice %x [0, 1] to [2, 6] by [1, 2] : tensor<2x8xf32> -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits, DenseI64ArrayAttr:$strides);
  let assemblyFormat = "$x $starts `to` $limits `by` $strides attr-dict `:` type($x) `->` type($result)";
  let hasCanonicalizer = 1;
}

def NN_ReverseOp : NN_PermutableShapeOp<"reverse", [SameOperandsAndResultType, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "elements in the opposite order along some dimensions";
  let description = [{
    Constraints:
    * (C1) `dims` are distinct dimensions of `x`.

    Sharding: `([i,j])->([i,j]) permutation={j}`, where j is one of `dims`.

    ```mlir
    %r = nn.reverse %x [1] : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, DenseI64ArrayAttr:$dims);
  let assemblyFormat = "$x $dims attr-dict `:` type($result)";
}

def NN_PadOp : NN_PermutableShapeOp<"pad", [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], ["isPermuted"]> {
  let summary = "a border of one value around a tensor";
  let description = [{
    Constraints:
    * (C1) `low` and `high` have one entry per dimension of `x`, none negative.
    * (C2) the size of each dimension of `result` is low + size + high, of the same element type.
    * (C3) `value` is a scalar of that element type.

    Sharding: `([i,j],[])->([i,k]) permutation={j,k}`, where i has no border.

    ```mlir
    %r = nn.pad %x, %zero low [0, 1] high [0, 1] : tensor<2x8xf32>, tensor<f32> -> tensor<2x10xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, NN_Tensor:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high);
  let assemblyFormat = "$x `,` $value `low` $low `high` $high attr-dict `:` type($x) `,` type($value) `->` type($result)";
}

def NN_ConcatOp : NN_PermutableShapeOp<"concat", [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "tensors one after another along a dimension";
  let description = [{
    Constraints:
    * (C1) there is at least one operand, and `dim` is a dimension of each.
    * (C2) operands and result agree in element type and in every dimension but `dim`.
    * (C3) the sizes of the operands along `dim` add up to that of `result`.

    Sharding: `([i,k],[i,l])->([i,j]) blocked={j,k,l}`, where j is `dim`. If
    the operands have equal sizes, `([i,k],[i,k])->([i,jk]) blocked={j}`.

    ```mlir
    %r = nn.concat %a, %b dim 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$operands, I64Attr:$dim);
  let assemblyFormat = "$operands `dim` $dim attr-dict `:` functional-type($operands, $result)";
}

def NN_GatherOp : NN_PermutableShapeOp<"gather", [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], ["canPermute", "isPermuted"], ["buildLocal"], ["readsComputedPlace"]> {
  let summary = "slices of a tensor chosen by an index tensor";
  let description = [{
    `result[a.., i.., b..] = x[a.., indices[i..], b..]`, where a.. are the
    dimensions before `dim` and b.. those after. A negative index counts from the
    end. An index out of range is clamped to the range.

    Constraints:
    * (C1) `dim` is a dimension of `x`, and of size at least 1 unless `result` is empty.
    * (C2) the shape of `result` is that of `x` with `dim` replaced by the shape of `indices`, of x's element type.

    Sharding: `([i,j],[k,l])->([k,l,j]) reduction={i}`, where i is `dim`. A shard
    looks up what lies in its part of `x`, and has 0 for the rest. If elements
    are only stored (8-bit floats), i is replicated.

    ```mlir
    %r = nn.gather %table, %ids dim 0 : tensor<100x16xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, NN_IndexTensor:$indices, I64Attr:$dim);
  let assemblyFormat = "$x `,` $indices `dim` $dim attr-dict `:` type($x) `,` type($indices) `->` type($result)";
}

def NN_GatherElementsOp : NN_ShapeOp<"gather_elements", [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], ["buildLocal"], ["readsComputedPlace"]> {
  let summary = "elements of a tensor chosen one by one along a dimension";
  let description = [{
    `result[a.., i, b..] = x[a.., indices[a.., i, b..], b..]`, where i is at `dim`.
    A negative index counts from the end. An index out of range is clamped to the
    range.

    Constraints:
    * (C1) `dim` is a dimension of `x`, and of size at least 1 unless `result` is empty.
    * (C2) `indices` has as many dimensions as `x`. Each of them except `dim` is at most as large as in `x`.
    * (C3) `result` has the shape of `indices` and x's element type.

    Sharding: `([i,j],[i,k])->([i,k]) reduction={j}`, where j is `dim`: as for
    `nn.gather`. Another dimension passes through if it has the same size in
    `indices` and in `x`.

    ```mlir
    %r = nn.gather_elements %x, %i dim 1 : tensor<4x16xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$x, NN_IndexTensor:$indices, I64Attr:$dim);
  let assemblyFormat = "$x `,` $indices `dim` $dim attr-dict `:` type($x) `,` type($indices) `->` type($result)";
}

def NN_IotaOp : NN_ShapeOp<"iota"> {
  let summary = "each element is its index along a dimension";
  let description = [{
    Constraints:
    * (C1) `dim` is a dimension of `result`.

    Sharding: `()->([i,j]) replicated={j}`, where j is `dim`.

    ```mlir
    %r = nn.iota 1 : tensor<2x8xi64>
    ```
  }];
  let noDerivative = "it has no operands";
  let arguments = (ins I64Attr:$dim);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
}

#endif // PARTITA_DIALECTS_NN_NNSHAPE_TD

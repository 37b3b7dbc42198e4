//===- NNOrdered.td - TopK, scan, scatter and slices -------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops whose loops carry a dependence from one iteration to the next, and one
// that changes a part of a tensor. The runtime implements them as a whole, for
// the element types f32, f64, i32 and i64, and the last one for all.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNORDERED_TD
#define PARTITA_DIALECTS_NN_NNORDERED_TD

include "dialects/nn/NNReduction.td"

defvar NN_OrderedTypes = [F32, F64, I32, I64];
def NN_OrderedTensor : StaticShapeTensorOf<NN_OrderedTypes>;

def NN_TopKOp : NN_ValueOp<"top_k"> {
  let summary = "column indices of the largest or smallest elements of each row";
  let description = [{
    The result has the column indices of the largest elements of each row, the
    largest first. Without `largest` they are those of the smallest elements,
    the smallest first. There are as many as the result has columns. Equal
    elements keep their order. NaN is larger than all numbers.

    Constraints:
    * (C1) `x` and `result` are matrices with the same number of rows; `result` has at most as many columns as `x`.

    Sharding: `([i,j])->([i,k]) replicated={j,k}`.

    ```mlir
    %r = nn.top_k largest %x : tensor<4x100xf32> -> tensor<4x5xi64>
    %s = nn.top_k %x : tensor<4x100xf32> -> tensor<4x5xi64>
    ```
  }];
  let noDerivative = "its result is indices; the elements themselves come from `nn.gather_elements`, which has one";
  let arguments = (ins UnitAttr:$largest, NN_OrderedTensor:$x);
  let results = (outs StaticShapeTensorOf<[I64]>:$result);
  let assemblyFormat = "(`largest` $largest^)? $x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def NN_ScanOp : NN_ValueOp<"scan", [AllTypesMatch<["x", "result"]>, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "combines each element with all before it along a dimension";
  let description = [{
    Constraints:
    * (C1) `dim` is a dimension of `x`.

    Sharding: `([i,j])->([i,j]) replicated={j}`, where j is `dim`.

    ```mlir
    %r = nn.scan sum %x dim 1 : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_OrderedTensor:$x, I64Attr:$dim);
  let results = (outs NN_OrderedTensor:$result);
  let assemblyFormat = "`` $kind $x `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_ScatterOp : NN_ValueOp<"scatter", [AllTypesMatch<["x", "result"]>, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "writes rows to places that are given by a tensor, one after the other";
  let description = [{
    Row i of `updates` replaces row `places[i]` of `x`, or is combined with it.
    Places outside of `x` are ignored.

    Constraints:
    * (C1) `x` and `updates` are matrices with the same number of columns and the same element type.
    * (C2) `places` has an element for each row of `updates`.

    Sharding: `([i,j],[k],[k,j])->([i,j]) replicated={i,k}`.

    ```mlir
    %r = nn.scatter %x %places %updates : tensor<100x8xf32>, tensor<5xi64>, tensor<5x8xf32>
    %s = nn.scatter %x %places %updates combine sum : tensor<100x8xf32>, tensor<5xi64>, tensor<5x8xf32>
    ```
  }];
  let arguments = (ins NN_OrderedTensor:$x, StaticShapeTensorOf<[I64]>:$places, NN_OrderedTensor:$updates,
    OptionalAttr<NN_ReduceKindAttr>:$combine);
  let results = (outs NN_OrderedTensor:$result);
  let assemblyFormat = [{
    $x $places $updates (`combine` $combine^)? attr-dict `:` type($x) `,` type($places) `,` type($updates)
  }];
  let hasVerifier = 1;
}

def NN_UpdateSliceOp : NN_ValueOp<"update_slice", [AllTypesMatch<["x", "result"]>]> {
  let summary = "writes a tensor into another, from places on that are given by a tensor";
  let description = [{
    x and result [S, .., L, ..], update [S, .., U, ..], start [S], where L and U
    are the sizes of dimension `dim`. Of sample s, entry i of `update` replaces
    entry `start[s] + i` modulo L of `x`; none does if `start[s]` is negative.

    Constraints:
    * (C1) `dim` is a dimension of `x`, and not the first.
    * (C2) `update` has the element type and the sizes of `x`, and at most as many entries along `dim`; it has some.
    * (C3) `start` has an element for each entry of dimension 0.

    Sharding: `([i,j,k],[i,l,k],[i])->([i,j,k]) replicated={j,l}`, where j is `dim`.

    ```mlir
    %r = nn.update_slice %x, %update, %start dim 2 : tensor<2x4x100x8xf16>, tensor<2x4x3x8xf16>, tensor<2xi64>
    ```
  }];
  let noDerivative = "it is written as a choice between the two where it is differentiated, and that has one";
  let arguments = (ins NN_Tensor:$x, NN_Tensor:$update, StaticShapeTensorOf<[I64]>:$start, I64Attr:$dim);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$x `,` $update `,` $start `dim` $dim attr-dict `:` type($x) `,` type($update) `,` type($start)";
  let hasVerifier = 1;
}

#endif // PARTITA_DIALECTS_NN_NNORDERED_TD

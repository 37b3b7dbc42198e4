//===- NNReduction.td - Reductions and softmax ---------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNREDUCTION_TD
#define PARTITA_DIALECTS_NN_NNREDUCTION_TD

include "dialects/nn/NNBase.td"

def NN_ReduceOp : NN_ValueOp<"reduce", [DeclareOpInterfaceMethods<NN_ReductionOpInterface>,
    DeclareOpInterfaceMethods<NN_RowwiseOpInterface>, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "combines the elements along some dimensions and removes them";
  let description = [{
    An empty reduction gives the neutral element (the lowest value for max, the
    highest for min).

    Constraints:
    * (C1) `dims` are strictly increasing dimensions of `x`.
    * (C2) the shape of `result` is that of `x` without `dims`, of the same element type.

    Sharding: `([i,j])->([i]) reduction={j}`.

    ```mlir
    %r = nn.reduce sum %x [1] : tensor<2x8xf32> -> tensor<2xf32>
    ```
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_NumberTensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = "`` $kind $x $dims attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def NN_WindowReduceOp : NN_ValueOp<"window_reduce", [DeclareOpInterfaceMethods<NN_ReductionOpInterface>,
    NN_PermutableOpInterface, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "combines the elements under a window that slides over a tensor";
  let description = [{
    Elements of the border, which `pads_low` and `pads_high` describe, are
    neutral. Average pooling is a sum and a division.

    Constraints:
    * (C1) `window`, `strides`, `dilations`, `pads_low`, `pads_high` have one entry per dimension of `x`; the first three are at least 1, pads are not negative.
    * (C2) each size of `result` is floor((low + size + high - ((window - 1) * dilation + 1)) / stride) + 1, of the same element type.

    Sharding: `([i,j,k,..])->([i,j,l,..]) permutation={k,l}`. A dimension passes
    through if each window is one element along it.

    ```mlir
    %r = nn.window_reduce max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
      : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xf32>
    ```
  }];
  let arguments = (ins NN_ReduceKindAttr:$kind, NN_NumberTensor:$x, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = [{
    `` $kind $x `window` $window `strides` $strides `dilations` $dilations `pads` $pads_low `x` $pads_high
    attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
}

def NN_WindowArgMaxOp : NN_ValueOp<"window_arg_max", [DeclareOpInterfaceMethods<NN_ReductionOpInterface, ["getReduceKind"]>,
    DeclareOpInterfaceMethods<NN_PermutableOpInterface, ["canPermute"]>]> {
  let summary = "which element under a window that slides over a tensor is the largest";
  let description = [{
    Each element is the number, within the window, of the first largest element
    under it. The elements of a window, also those of the border, are numbered
    in row-major order from 0. A NaN is larger than any number. Dimension order
    and window are as in `nn.window_reduce`.

    `max`, if it is there, is the largest element under each window. Kernels add
    it, so that it is found once. It is computed from the same `x`.

    Constraints:
    * (C1) as (C1) of `nn.window_reduce`.
    * (C2) as (C2) of `nn.window_reduce`, with element type i32.
    * (C3) every window holds at least one element of `x`.
    * (C4) a window has less than 2^31 elements.
    * (C5) `max` has the shape of `result` and x's element type.

    Sharding: as `nn.window_reduce`.

    ```mlir
    %r = nn.window_arg_max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
      : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xi32>
    ```
  }];
  let noDerivative = "its result is numbers of elements";
  let arguments = (ins NN_NumberTensor:$x, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high, Optional<NN_NumberTensor>:$max);
  let results = (outs StaticShapeTensorOf<[I32]>:$result);
  let assemblyFormat = [{
    $x (`max` $max^)? `window` $window `strides` $strides `dilations` $dilations `pads` $pads_low `x` $pads_high
    attr-dict `:` type($x) (`,` type($max)^)? `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The flat, row-major index into `x` of each of these elements, as i64.
    ::mlir::Value buildPlaces(::mlir::ImplicitLocOpBuilder &builder);
  }];
}

def NN_WindowSpreadOp : NN_ValueOp<"window_spread", [DeclareOpInterfaceMethods<NN_ReductionOpInterface>,
    DeclareOpInterfaceMethods<NN_PermutableOpInterface, ["canPermute"]>, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "adds each element to one of those under its window";
  let description = [{
    Windows slide over `result`, and `dy` has an element for each. It is added
    to the element that `chosen` names by its number within the window, as
    `nn.window_arg_max` does. What lies in the border is lost, and so is an
    element with another number. It is the derivative of a largest element.
    (That of a window's sum is a sum, too: of `dy` with zeros between its
    elements.)

    Constraints:
    * (C1) as (C1) of `nn.window_reduce`, for the dimensions of `result`.
    * (C2) `dy` is what a `nn.window_reduce` of `result` gives.
    * (C3) `chosen` has the shape of `dy`.
    * (C4) a window has less than 2^31 elements.

    Sharding: `([i,j,l,..],[i,j,l,..])->([i,j,k,..]) permutation={k,l}`. A
    dimension passes through if each window is one element along it.

    ```mlir
    %r = nn.window_spread %dy at %chosen window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
      : tensor<1x4x4x4xf32>, tensor<1x4x4x4xi32> -> tensor<1x4x8x8xf32>
    ```
  }];
  let derivativeNote = "of `dy`";
  let arguments = (ins NN_FloatTensor:$dy, StaticShapeTensorOf<[I32]>:$chosen, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `at` $chosen `window` $window `strides` $strides `dilations` $dilations `pads` $pads_low `x` $pads_high
    attr-dict `:` type($dy) `,` type($chosen) `->` type($result)
  }];
  let hasVerifier = 1;
}

def NN_SoftmaxOp : NN_ValueOp<"softmax", [SameOperandsAndResultType, DeclareOpInterfaceMethods<NN_RowwiseOpInterface>,
    NN_PermutableOpInterface, DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "exp(x - max) / sum(exp(x - max)) along a dimension, or its logarithm";
  let description = [{
    Constraints:
    * (C1) `dim` is a dimension of `x`.

    Sharding: `([i,j])->([i,j]) replicated={j}`, where j is `dim`.

    ```mlir
    %r = nn.softmax %x dim 1 : tensor<2x8xf32>
    %s = nn.softmax %x dim 1 log : tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, I64Attr:$dim, UnitAttr:$log);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$x `dim` $dim (`log` $log^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // PARTITA_DIALECTS_NN_NNREDUCTION_TD

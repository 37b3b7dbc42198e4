//===- NNContraction.td - Dot, convolution, attention --------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNCONTRACTION_TD
#define PARTITA_DIALECTS_NN_NNCONTRACTION_TD

include "dialects/nn/NNBase.td"

def NN_ImageLayout : I32EnumAttr<"ImageLayout", "where a tensor of images has its channels", [
    I32EnumAttrCase<"channels_first", 0>, I32EnumAttrCase<"channels_last", 1>]> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}
def NN_ImageLayoutAttr : EnumAttr<NN_Dialect, NN_ImageLayout, "layout">;

def NN_DotOp : NN_ValueOp<"dot", [DeclareOpInterfaceMethods<NN_ReductionOpInterface>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "sum of products over contracted dimensions";
  let description = [{
    The dimensions of the result are the batch dimensions, then the free
    dimensions of `lhs`, then those of `rhs`, each in their order. A sum of no
    products is 0.

    Constraints:
    * (C1) `lhs_batch` and `rhs_batch` have the same length, as have `lhs_contract` and `rhs_contract`.
    * (C2) the dimensions named for an operand are distinct dimensions of it.
    * (C3) batch and contracted dimensions that correspond have the same size.
    * (C4) the shape of `result` is as described.
    * (C5) all element types are the same; or `lhs` has integers of 8 bits, `rhs` signed integers of 8 bits, and `result` has i32.

    Sharding: `([i,j,l],[i,l,k])->([i,j,k]) reduction={l}`.

    ```mlir
    %r = nn.dot %x, %w batch [0] x [0] contract [2] x [1] : tensor<8x4x16xf32>, tensor<8x16x32xf32> -> tensor<8x4x32xf32>
    ```
  }];
  let arguments = (ins NN_NumberTensor:$lhs, NN_NumberTensor:$rhs,
    DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
    DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs NN_NumberTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `batch` $lhs_batch `x` $rhs_batch `contract` $lhs_contract `x` $rhs_contract
    attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

/// A convolution, or a derivative of one, which has the windows of the
/// convolution.
class NN_AnyConvOp<string mnemonic, Type tensor, string first, string second>
    : NN_ValueOp<mnemonic, [DeclareOpInterfaceMethods<NN_ReductionOpInterface>,
        DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], ["buildLocal"]> {
  let arguments = !con(!dag(ins, [tensor, tensor], [first, second]), (ins NN_ImageLayoutAttr:$layout,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
    DenseI64ArrayAttr:$pads_low, DenseI64ArrayAttr:$pads_high, I64Attr:$groups));
  let results = (outs tensor:$result);
  let assemblyFormat = "$" # first # "`,` $" # second # [{
    `` $layout `strides` $strides `dilations` $dilations `pads` $pads_low `x` $pads_high
    `groups` $groups attr-dict `:` type($}] # first # ") `,` type($" # second # ") `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Dimension of images that holds channels, and that of the first spatial dimension.
    int64_t getChannelDim() {
      return getLayout() == ImageLayout::channels_first ? 1 : getStrides().size() + 1;
    }
    int64_t getFirstSpatialDim() {
      return getLayout() == ImageLayout::channels_first ? 2 : 1;
    }
  }];
  // With the groups that are on the device.
  let extraClassDefinition = [{
    ::mlir::Operation *$cppClass::buildLocal(::mlir::OpBuilder &builder, const ShardingRule &rule,
        ::llvm::ArrayRef<int64_t> sizes, ::mlir::ValueRange operands, ::llvm::ArrayRef<::mlir::Value>) {
      auto local = ::llvm::cast<$cppClass>(buildLocalLike(builder, getOperation(), rule, sizes, operands));
      if (getGroups() > 1)
        local.setGroups(sizes[rule.operands[0][getChannelDim()].front()]);
      return local;
    }
  }];
}

def NN_ConvOp : NN_AnyConvOp<"conv", NN_NumberTensor, "x", "weights"> {
  let summary = "convolution of images (any number of spatial dimensions)";
  let description = [{
    `x` and `result` are [N, C, spatial..] (`channels_first`) or [N, spatial..,
    C] (`channels_last`). `weights` is always [O, C / groups, spatial..].

    Constraints:
    * (C1) `x`, `weights` and `result` have the same rank, at least 3, and one element type; or the integer types that C5 of `nn.dot` allows.
    * (C2) `strides`, `dilations`, `pads_low`, `pads_high` have one entry per spatial dimension; strides and dilations are at least 1.
    * (C3) `groups` >= 1 divides C and O, and weights has C / groups input channels.
    * (C4) each spatial size of `result` is floor((low + size + high - ((k - 1) * dilation + 1)) / stride) + 1, and its N and O are those of `x` and `weights`.

    Sharding: `([i,k,m,..],[j,k,l,..])->([i,j,n,..]) permutation={m,n}
    reduction={k} replicated={l}`. With j groups, C is jl, O is jk and `weights`
    is [jk,l,..]. A spatial dimension passes through if each window is one pixel
    along it.

    ```mlir
    %r = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
      : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
    ```
  }];
}

def NN_ConvDxOp : NN_AnyConvOp<"conv_dx", NN_FloatTensor, "dy", "weights"> {
  let summary = "the derivative of a convolution to its image";
  let description = [{
    Of `y = nn.conv x, weights` with the same windows: `result` is the sum over
    the elements of y of `dy` times their derivative to `x`. It has the shape of
    x, which the windows need not cover: the rest is 0.

    Constraints:
    * (C1) `nn.conv` takes `result` for x and `weights` with these windows, and gives the type of `dy`, of floats.

    Sharding: `([i,j,n,..],[j,k,l,..])->([i,k,m,..]) permutation={m,n}
    reduction={j} replicated={l}`, groups and spatial dimensions as of `nn.conv`.

    ```mlir
    %r = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
      : tensor<1x4x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>
    ```
  }];
}

def NN_ConvDwOp : NN_AnyConvOp<"conv_dw", NN_FloatTensor, "x", "dy"> {
  let summary = "the derivative of a convolution to its weights";
  let description = [{
    Of `y = nn.conv x, weights` with the same windows: `result` is the sum over
    the elements of y of `dy` times their derivative to the weights.

    Constraints:
    * (C1) `nn.conv` takes `x` and `result` for its weights with these windows, and gives the type of `dy`, of floats.

    Sharding: `([i,k,m,..],[i,j,n,..])->([j,k,l,..]) permutation={l} reduction={i}
    replicated={m,n}`, groups as of `nn.conv`. A spatial dimension is summed
    over if each window is one pixel along it.

    ```mlir
    %r = nn.conv_dw %x, %dy channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
      : tensor<1x3x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<4x3x3x3xf32>
    ```
  }];
}

def NN_AttentionOp : NN_ValueOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax((q . k^T) * scale * mask_mul + mask_add) . v, kept whole";
  let description = [{
    q [B, H, M, D], k [B, H, L, D], v [B, H, L, E], result [B, H, M, E]. The masks
    broadcast to [B, H, M, L]: each of their four dimensions has the full size or 1.

    Constraints:
    * (C1) q, k, v and result have rank 4, the same element type, B and H.
    * (C2) q and k agree in D, k and v in L, q and result in M, v and result in E.
    * (C3) each dimension of a mask is 1 or the same as in [B, H, M, L].
    * (C4) D is at least 1.

    Sharding: `([i,j,k,n],[i,j,m,n],[i,j,m,l])->([i,j,k,l]) replicated={m,n}`, masks
    [i,j,k,m].

    ```mlir
    %r = nn.attention %q, %k, %v mask_add %m : tensor<1x1x1x8xf32> scale 0.125
      : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>
    ```
  }];
  let noDerivative = "it is written as products and a softmax where it is differentiated, and these have one";
  let arguments = (ins NN_FloatTensor:$q, NN_FloatTensor:$k, NN_FloatTensor:$v,
    Optional<NN_FloatTensor>:$mask_mul, Optional<NN_FloatTensor>:$mask_add, F64Attr:$scale);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask_mul` $mask_mul^ `:` type($mask_mul))? (`mask_add` $mask_add^ `:` type($mask_add))?
    `scale` $scale attr-dict `:` type($q) `,` type($k) `,` type($v) `->` type($result)
  }];
  let hasVerifier = 1;
}

def NN_ExpertDotOp : NN_ValueOp<"expert_dot", [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], ["buildLocal"]> {
  let summary = "product of each row with the matrix that an index chooses for it";
  let description = [{
    `result[i.., n] = sum_k x[i.., k] * weights[experts[i..], n, k]`, where
    `weights` is [E, N, K]. A row whose index is not one of 0 to E - 1 is 0:
    where experts are cut, another device computes it.

    Constraints:
    * (C1) `x`, `weights` and `result` have the same element type.
    * (C2) the shapes are as described; E and K are at least 1.

    Sharding: `([i,j],[k,l,j],[i])->([i,l]) reduction={j,k}`. A shard with a part
    of the experts counts from the first one that it has.

    ```mlir
    %r = nn.expert_dot %x, %w experts %e : tensor<6x16xf32>, tensor<4x8x16xf32>, tensor<6xi64> -> tensor<6x8xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$x, NN_FloatTensor:$weights, StaticShapeTensorOf<[I64]>:$experts);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weights `experts` $experts attr-dict
    `:` type($x) `,` type($weights) `,` type($experts) `->` type($result)
  }];
  let hasVerifier = 1;
}

def NN_ExpertOuterOp : NN_ValueOp<"expert_outer", [DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>], ["buildLocal"]> {
  let summary = "the derivative of nn.expert_dot to its weights";
  let description = [{
    `result[e, n, k]` is the sum of `dy[i.., n] * x[i.., k]` over the rows i..
    whose index `experts[i..]` is e. A sum of no rows is 0. A row whose index is
    none of the result's counts for nothing.

    Constraints:
    * (C1) `dy`, `x` and `result` have the same element type.
    * (C2) the shapes are as of `nn.expert_dot`.

    Sharding: `([i,l],[i,j],[i])->([k,l,j]) reduction={i}`. A shard with a part
    of the experts counts from the first one that it has.

    ```mlir
    %r = nn.expert_outer %dy, %x experts %e : tensor<6x8xf32>, tensor<6x16xf32>, tensor<6xi64> -> tensor<4x8x16xf32>
    ```
  }];
  let arguments = (ins NN_FloatTensor:$dy, NN_FloatTensor:$x, StaticShapeTensorOf<[I64]>:$experts);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `,` $x `experts` $experts attr-dict
    `:` type($dy) `,` type($x) `,` type($experts) `->` type($result)
  }];
  let hasVerifier = 1;
}

def NN_PackedDotOp : NN_ValueOp<"packed_dot", [AttrSizedOperandSegments], ["buildLocal"]> {
  let summary = "product with weights of 2, 4 or 8 bits, kept whole";
  let description = [{
    x [.., K], weights ui8 [N, B, P], scales [N, B], zeros [N, B], result [.., N].
    P bytes hold a block of `8 / bits * P` numbers, the first one in the lowest
    bits. The weight of a number q is `(q - zero) * scale`. Without `zeros`, the
    zero is `2^(bits - 1)`. Numbers past K count for nothing. With `experts`,
    each row of x has an index, and `weights`, `scales` and `zeros` have a
    first dimension that it chooses from, as in `nn.expert_dot`.

    Constraints:
    * (C1) `bits` is 2, 4 or 8; P is a power of two, at least `2 * bits`.
    * (C2) `x`, `scales`, `zeros` and `result` have the same element type.
    * (C3) the shapes are as described, and B blocks are as few as K numbers need; K is at least 1.

    Sharding: `([i,jk],[l,j,m],[l,j])->([i,l]) reduction={j} replicated={k,m}`, `zeros`
    as `scales`. If K is no multiple of a block, x has one factor for it, and j
    is replicated, too. The dimension of experts is a reduction.

    ```mlir
    %r = nn.packed_dot %x, %w, %s bits 4 : tensor<2x64xf32>, tensor<8x2x16xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
    ```
  }];
  let noDerivative = "it is written as a product of unpacked weights where it is differentiated, and that has one";
  let arguments = (ins NN_FloatTensor:$x, StaticShapeTensorOf<[UI<8>]>:$weights, NN_FloatTensor:$scales,
    Optional<NN_FloatTensor>:$zeros, Optional<StaticShapeTensorOf<[I64]>>:$experts, I64Attr:$bits);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $weights `,` $scales (`zeros` $zeros^ `:` type($zeros))? (`experts` $experts^ `:` type($experts))?
    `bits` $bits attr-dict
    `:` type($x) `,` type($weights) `,` type($scales) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Numbers of a block.
    int64_t getBlockSize() { return getWeights().getType().getShape().back() * 8 / getBits(); }
  }];
}

#endif // PARTITA_DIALECTS_NN_NNCONTRACTION_TD

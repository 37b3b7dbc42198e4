//===- Passes.td - Passes that simplify a model --------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SIMPLIFY_PASSES_TD
#define PARTITA_COMPILER_SIMPLIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

class SimplifyPass<string flag> : Pass<flag, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::partita::nn::NNDialect"];
}

def DelayBroadcastsPass : SimplifyPass<"nn-delay-broadcasts"> {
  let summary = "compute before elements are repeated, not after";
  let description = [{
    A pointwise op whose operands are all repeated in the same way, or uniform,
    is computed on the elements before repetition.

    ```mlir
    %0 = nn.broadcast %a [1] : tensor<4xf32> -> tensor<2x4xf32>
    %1 = nn.broadcast %b [1] : tensor<4xf32> -> tensor<2x4xf32>
    %2 = nn.mul %0, %1 : tensor<2x4xf32>
    // becomes
    %0 = nn.mul %a, %b : tensor<4xf32>
    %1 = nn.broadcast %0 [1] : tensor<4xf32> -> tensor<2x4xf32>
    ```
  }];
}

def GatherFirstPass : SimplifyPass<"nn-gather-first"> {
  let summary = "look rows of weights up before something is computed of them";
  let description = [{
    A table whose numbers are made of narrower ones, as `DequantizeLinear` does,
    would be computed when the model is loaded, and take several times the
    memory. The chosen rows alone are computed instead, in each step. The table
    must have no other use, and take twice the bytes of what it is made of.

    ```mlir
    %t = nn.cast %q : tensor<100x16xi8> -> tensor<100x16xf32>
    %s = nn.broadcast %scale [0] : tensor<100xf32> -> tensor<100x16xf32>
    %m = nn.mul %t, %s : tensor<100x16xf32>
    %r = nn.gather %m, %ids dim 0 : tensor<100x16xf32>, tensor<4xi64> -> tensor<4x16xf32>
    // becomes
    %q2 = nn.gather %q, %ids dim 0 : tensor<100x16xi8>, tensor<4xi64> -> tensor<4x16xi8>
    %s2 = nn.gather %scale, %ids dim 0 : tensor<100xf32>, tensor<4xi64> -> tensor<4xf32>
    %t2 = nn.cast %q2 : tensor<4x16xi8> -> tensor<4x16xf32>
    %b2 = nn.broadcast %s2 [0] : tensor<4xf32> -> tensor<4x16xf32>
    %r = nn.mul %t2, %b2 : tensor<4x16xf32>
    ```
  }];
}

def FoldScalePass : SimplifyPass<"nn-fold-scale"> {
  let summary = "scale the weights of a contraction instead of its result";
  let description = [{
    A multiplication of the result of `nn.conv` or `nn.dot` by one factor per
    output channel becomes a multiplication of the weights. The factors must
    depend on weights only, so the weights are scaled once, when the model is
    loaded. A term added before the factor is scaled too. Terms that depend on
    weights only are added to each other first. So batch normalization
    disappears.

    ```mlir
    %0 = nn.conv %x, %w ...
    %1 = nn.broadcast %b [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
    %2 = nn.add %0, %1 : tensor<1x4x8x8xf32>
    %3 = nn.broadcast %s [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
    %4 = nn.mul %2, %3 : tensor<1x4x8x8xf32>
    // becomes
    %0 = nn.broadcast %s [0] : tensor<4xf32> -> tensor<4x3x3x3xf32>
    %1 = nn.mul %w, %0 : tensor<4x3x3x3xf32>
    %2 = nn.conv %x, %1 ...
    %3 = nn.mul %b, %s : tensor<4xf32>
    %4 = nn.broadcast %3 [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
    %5 = nn.add %2, %4 : tensor<1x4x8x8xf32>
    ```
  }];
}

def ExpandConvGradientsPass : SimplifyPass<"nn-expand-conv-gradients"> {
  let summary = "write derivatives of convolutions as convolutions";
  let description = [{
    Where the backend of a target has no library call for a derivative of a
    convolution, it becomes a convolution, for which it may have one. To the
    image: of the cotangent, its elements a stride apart, under the reversed
    window. To the weights: of the image under a window that is the whole
    cotangent, with the batch in the place of the channels.

    ```mlir
    %r = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : ...
    // becomes, but for a reshape that changes nothing
    %t = nn.transpose %w [1, 0, 2, 3] : ...
    %v = nn.reverse %t [2, 3] : ...
    %r = nn.conv %dy, %v channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : ...
    ```
  }];
  let options = [
    Option<"libraryCalls", "library-calls", "bool", "true", "libraries compute convolutions; if not, nothing is done">
  ];
}

def ExpandCallsPass : SimplifyPass<"nn-expand-calls"> {
  let summary = "write ops that no library computes as others";
  let description = [{
    This is for ops that some backends compute by a call. Where the backend of a
    target has none, packed weights become floats, and the product one of
    floats: weights that are known at load are unpacked then. Products of experts become products with gathered
    matrices. A tensor into which another is written becomes a choice between
    the two.

    ```mlir
    %r = nn.packed_dot %x, %w, %s bits 8 : tensor<2x16xf32>, tensor<3x1x16xui8>, tensor<3x1xf32> -> tensor<2x3xf32>
    // becomes
    %q = nn.cast %w : tensor<3x1x16xui8> -> tensor<3x1x16xf32>
    %d = nn.sub %q, %c : tensor<3x1x16xf32>            // %c is 128 everywhere
    %b = nn.broadcast %s [0, 1] : tensor<3x1xf32> -> tensor<3x1x16xf32>
    %m = nn.mul %d, %b : tensor<3x1x16xf32>
    %f = nn.reshape %m : tensor<3x1x16xf32> -> tensor<3x16xf32>
    %r = nn.dot %x, %f batch [] x [] contract [1] x [1] : tensor<2x16xf32>, tensor<3x16xf32> -> tensor<2x3xf32>
    ```
  }];
  let options = [
    Option<"libraryCalls", "library-calls", "bool", "true", "libraries compute what they can; if not, all such ops are expanded">,
    Option<"keepDifferentiable", "keep-differentiable", "bool", "false", "those that have a derivative stay">
  ];
}

def SimplifyProductsPass : SimplifyPass<"nn-simplify-products"> {
  let summary = "scale the smaller factor of a product, and read a repeated one once";
  let description = [{
    A number that multiplies one operand of a product goes to the smaller one,
    with the other's. Where the right side is repeated for several matrices of a
    batch, as keys are that serve several heads, the rows of these matrices
    become rows of one.

    ```mlir
    %b = nn.broadcast %k [0, 2, 3] : tensor<8x512x64xf32> -> tensor<8x2x512x64xf32>
    %c = nn.reshape %b : tensor<8x2x512x64xf32> -> tensor<16x512x64xf32>
    %r = nn.dot %q, %c batch [0] x [0] contract [2] x [2] : tensor<16x4x64xf32>, tensor<16x512x64xf32> -> tensor<16x4x512xf32>
    // becomes
    %d = nn.reshape %q : tensor<16x4x64xf32> -> tensor<8x2x4x64xf32>
    %p = nn.dot %d, %k batch [0] x [0] contract [3] x [2] : tensor<8x2x4x64xf32>, tensor<8x512x64xf32> -> tensor<8x2x4x512xf32>
    %r = nn.reshape %p : tensor<8x2x4x512xf32> -> tensor<16x4x512xf32>
    ```
  }];
}

def RaiseAttentionPass : SimplifyPass<"nn-raise-attention"> {
  let summary = "find softmax(q . k^T) . v and keep it whole";
  let description = [{
    The pattern allows these ops between the first product and the softmax:
    factors and divisors that are numbers (also on q or k), a mask as a factor,
    added or subtracted masks, and a selection against a large negative number.
    The scores must have no other use. The backends of all targets are asked
    whether attention is best kept whole (`plan.target` of the module, or
    `dist.targets` of the function). Where rows are few, and keys or values are
    repeated for several heads, or what a ring holds, in its order, the products
    read these in place, and stay.

    ```mlir
    %s = nn.dot %q, %kt batch [0, 1] x [0, 1] contract [3] x [2] : ...
    %c = nn.constant dense<0.125> : tensor<1x2x8x8xf32>
    %t = nn.mul %s, %c : tensor<1x2x8x8xf32>
    %p = nn.softmax %t dim 3 : tensor<1x2x8x8xf32>
    %r = nn.dot %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : ...
    // becomes
    %k = nn.transpose %kt [0, 1, 3, 2] : ...
    %r = nn.attention %q, %k, %v scale 0.125 : ...
    ```
  }];
  let options = [
    Option<"libraryCalls", "library-calls", "bool", "true", "libraries compute products; if not, all attention is kept whole">,
    Option<"attentionCalls", "attention-calls", "bool", "false", "on GPUs attention is a call of its own">
  ];
}

def RaiseExpertsPass : SimplifyPass<"nn-raise-experts"> {
  let summary = "find products of rows with matrices that were gathered for them";
  let description = [{
    Programs choose the weights of experts by an index, and multiply each row by
    its own. The weights are many times larger than what is computed of them;
    `nn.expert_dot` reads them where they lie.

    ```mlir
    %g = nn.gather %w, %i dim 0 : tensor<4x96x64xf32>, tensor<12xi64> -> tensor<12x96x64xf32>
    %r = nn.dot %g, %x batch [0] x [0] contract [2] x [1] : tensor<12x96x64xf32>, tensor<12x64x1xf32> -> tensor<12x96x1xf32>
    // becomes, with indices from the end, and out of range, as nn.gather reads them
    %y = nn.reshape %x : tensor<12x64x1xf32> -> tensor<12x64xf32>
    %d = nn.expert_dot %y, %w experts %j : tensor<12x64xf32>, tensor<4x96x64xf32>, tensor<12xi64> -> tensor<12x96xf32>
    %r = nn.reshape %d : tensor<12x96xf32> -> tensor<12x96x1xf32>
    ```
  }];
}

def ChannelsLastPass : SimplifyPass<"nn-channels-last"> {
  let summary = "lay images out with their channels innermost";
  let description = [{
    Every convolution is made `channels_last` between two transposes. Transposes
    then move down, once through the function, past every op that commutes with
    them, until they meet their inverse, or an op that they cannot pass. A
    transpose stays before an op if moving it would need transposes of other
    operands that have as many bytes or more.

    ```mlir
    %0 = nn.conv %x, %w channels_first ...
    %1 = nn.relu %0 : tensor<1x4x8x6xf32>
    // becomes
    %0 = nn.transpose %x [0, 2, 3, 1] : ...
    %1 = nn.conv %0, %w channels_last ...
    %2 = nn.relu %1 : tensor<1x8x6x4xf32>
    %3 = nn.transpose %2 [0, 3, 1, 2] : tensor<1x8x6x4xf32> -> tensor<1x4x8x6xf32>
    ```
  }];
}

def SplitReductionsPass : SimplifyPass<"nn-split-reductions"> {
  let summary = "reduce large tensors in two steps, so that all cores take part";
  let description = [{
    A reduction of many elements to few, along several dimensions, is done along
    the inner dimensions first. The first step then has a result for each
    position of the outer ones. Where these are few, or there are none, a
    dimension is cut into pieces, and the first step has a result for each piece.
    Whether a reduction is split depends only on the shapes, not on the number
    of cores, so that all devices compute the same bits.

    ```mlir
    %0 = nn.reduce sum %x [1, 2] : tensor<1x800x800x16xf32> -> tensor<1x16xf32>
    // becomes
    %0 = nn.reduce sum %x [2] : tensor<1x800x800x16xf32> -> tensor<1x800x16xf32>
    %1 = nn.reduce sum %0 [1] : tensor<1x800x16xf32> -> tensor<1x16xf32>

    %2 = nn.reduce sum %y [0] : tensor<1000000xf32> -> tensor<f32>
    // becomes
    %2 = nn.reshape %y : tensor<1000000xf32> -> tensor<250x4000xf32>
    %3 = nn.reduce sum %2 [1] : tensor<250x4000xf32> -> tensor<250xf32>
    %4 = nn.reduce sum %3 [0] : tensor<250xf32> -> tensor<f32>
    ```
  }];
}

def WidenHalvesPass : SimplifyPass<"nn-widen-halves"> {
  let summary = "compute f16 and bf16 in f32";
  let options = [
    Option<"keep", "keep", "bool", "false", "compute them as they are; only remove the attribute `nn.inner`">
  ];
  let description = [{
    For devices that have no arithmetic of halves: CPUs. Where a target is none
    (`plan.target` of the module, or `dist.targets` of the function), halves are
    computed as they are. Weights, constants and
    inputs of halves are converted once. What is computed from them is f32 and
    is not rounded in between. It is rounded to the model's type

    * where it leaves the graph,
    * by a conversion that the model itself asks for. An op that computes in
      f32 by itself has converted its result to halves. Its `nn.cast` has the
      attribute `nn.inner`, which this pass removes, and does not round,
    * before an op that the least change sends elsewhere: a comparison, an
      index, a conversion to integers, a rounding to whole numbers. It decides
      about the number that the model says,
    * before its bits are read (`nn.bitcast`).

    So results depend neither on what is fused nor on where the model is cut. A
    sum beyond the largest half is infinite where it is rounded, and not before.

    A move of halves remains one, if nobody computes with what it gives. Rows
    of a table are converted when they have been chosen.

    ```mlir
    %w = nn.parameter @w : tensor<4x2xf16>
    %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf16>, tensor<4x2xf16> -> tensor<8x2xf16>
    %1 = nn.relu %0 : tensor<8x2xf16>
    // becomes
    %a = nn.cast %x : tensor<8x4xf16> -> tensor<8x4xf32>
    %w = nn.parameter @w : tensor<4x2xf16>
    %b = nn.cast %w : tensor<4x2xf16> -> tensor<4x2xf32>
    %0 = nn.dot %a, %b batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = nn.relu %0 : tensor<8x2xf32>
    %2 = nn.cast %1 : tensor<8x2xf32> -> tensor<8x2xf16>
    ```
  }];
}

def ContractStatesPass : SimplifyPass<"nn-contract-states"> {
  let summary = "read the states that a product turns as they lie";
  let description = [{
    A weight that is trained cannot be turned when the model is loaded. A
    product whose operand is a transposed state contracts another dimension of
    the state instead. Without this, each step would make a copy of the weight,
    which lives as long as the step.

    Where an operand is what a ring holds (`nn.ring_dim`), in its order, with new
    entries behind it, the ring is multiplied as it lies. The result, or the
    other operand, is reordered instead (`nn.gather`).

    ```mlir
    %w = nn.parameter state @w : tensor<9x4xf32>
    %t = nn.transpose %w [1, 0] : tensor<9x4xf32> -> tensor<4x9xf32>
    %r = nn.dot %x, %t batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x9xf32> -> tensor<2x9xf32>
    // becomes
    %r = nn.dot %x, %w batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<9x4xf32> -> tensor<2x9xf32>
    ```
  }];
}

def MixedPrecisionPass : SimplifyPass<"nn-mixed-precision"> {
  let summary = "multiply halves in a model of f32";
  let options = [
    Option<"type", "type", "std::string", "\"bf16\"", "bf16 or f16">
  ];
  let description = [{
    Factors of `nn.dot`, `nn.conv` and `nn.attention` are rounded to halves, and
    so is what they give, which is f32 from there on. A bias that changes once a
    step at most is added before, and a ReLU is computed before, if nobody else
    needs what they read, and the libraries of all targets do both with the
    product. Everything else stays f32: parameters, sums over samples,
    normalizations, softmax, losses, optimizers. Elements that are only moved
    between two products stay halves. What is computed when a model is loaded is
    not changed, nor is what some target multiplies no faster in halves: on CPUs
    all but `nn.dot` of bf16.

    ```mlir
    %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    // becomes
    %a = nn.cast %x : tensor<8x4xf32> -> tensor<8x4xbf16>
    %b = nn.cast %w : tensor<4x2xf32> -> tensor<4x2xbf16>
    %c = nn.dot %a, %b batch [] x [] contract [1] x [0] : tensor<8x4xbf16>, tensor<4x2xbf16> -> tensor<8x2xbf16>
    %0 = nn.cast %c : tensor<8x2xbf16> -> tensor<8x2xf32>
    ```
  }];
}

#endif // PARTITA_COMPILER_SIMPLIFY_PASSES_TD

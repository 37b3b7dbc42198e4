//===- NNRecurrent.td - Layers that run over time ------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_NN_NNRECURRENT_TD
#define PARTITA_DIALECTS_NN_NNRECURRENT_TD

include "dialects/nn/NNBase.td"

def NN_Cell : I32EnumAttr<"Cell", "what a recurrent layer computes in a step", [
    I32EnumAttrCase<"rnn", 0>, I32EnumAttrCase<"gru", 1>, I32EnumAttrCase<"lstm", 2>]> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}
def NN_CellAttr : EnumAttr<NN_Dialect, NN_Cell, "cell">;

def NN_GateFunctionKind : I32EnumAttr<"GateFunctionKind", "the function of a gate", [
    I32EnumAttrCase<"relu", 0>, I32EnumAttrCase<"tanh", 1>, I32EnumAttrCase<"logistic", 2>,
    I32EnumAttrCase<"affine", 3>, I32EnumAttrCase<"leaky_relu", 4>, I32EnumAttrCase<"thresholded_relu", 5>,
    I32EnumAttrCase<"scaled_tanh", 6>, I32EnumAttrCase<"hard_sigmoid", 7>, I32EnumAttrCase<"elu", 8>,
    I32EnumAttrCase<"softsign", 9>, I32EnumAttrCase<"softplus", 10>]> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}
def NN_GateFunctionAttr : AttrDef<NN_Dialect, "GateFunction"> {
  let mnemonic = "gate";
  let summary = "the function of a gate, with its parameters";
  let description = [{
    affine: alpha * x + beta. leaky_relu: x, or alpha * x where x is negative.
    thresholded_relu: x where it is above alpha, else 0. scaled_tanh: alpha *
    tanh(beta * x). hard_sigmoid: alpha * x + beta, kept in [0, 1]. elu: x, or
    alpha * (exp(x) - 1) where x is negative. The other functions have no
    parameters.

    ```mlir
    #nn.gate<scaled_tanh 1.5, 0.5>
    ```
  }];
  let parameters = (ins EnumParameter<NN_GateFunctionKind>:$kind,
    APFloatParameter<"">:$alpha_float, APFloatParameter<"">:$beta_float);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "GateFunctionKind":$kind, CArg<"double", "0.0">:$alpha, CArg<"double", "0.0">:$beta), [{
    return $_get($_ctxt, kind, ::llvm::APFloat(alpha), ::llvm::APFloat(beta));
  }]>];
  let extraClassDeclaration = [{
    double getAlpha() const { return getAlphaFloat().convertToDouble(); }
    double getBeta() const { return getBetaFloat().convertToDouble(); }
  }];
}
def NN_GateFunctions : TypedArrayAttrBase<NN_GateFunctionAttr, "functions of gates">;

def NN_RecurrentOp : NN_ValueOp<"recurrent", [AttrSizedOperandSegments], ["buildLocal"]> {
  let summary = "a recurrent layer: the loop over time, kept whole";
  let description = [{
    The layer has T steps, D directions, a batch of B, a hidden state of H
    elements and G gates (rnn 1; gru z, r, h; lstm i, o, f, c).

    `x` [T, B, D, G * H] is the contribution of the inputs and biases to the
    gates. `weights` [D, G * H, H] multiplies the hidden state. `result` [T + S,
    D, B, H] has the hidden state after each step, and then S final states: the
    hidden state, and for lstm the cell's state.

    A direction that is `reversed` walks each sequence from its end. If
    `lengths` [B] is given, sequence b ends after `lengths[b]` steps: later
    steps do not change the states, and their result is 0. `initial` and
    `initial_cell` [D, B, H] are 0 if they are not given. `peepholes` [D, 3 * H]
    multiply the cell's state for the gates i, o, f. With `hidden_bias` [D, H]
    (`reset_after`), the gate r of a gru multiplies the product for the gate h,
    after `hidden_bias` is added to it. Without it, r multiplies the hidden
    state before the product. `coupled` makes the gate f of an lstm 1 - i. The
    gates' sums are clamped to [-clip, clip] if `clip` is not 0. `functions`
    has, for each direction, f of the gates; for gru and lstm also g, of the new
    state; for lstm also h, of the cell's state.

    Constraints:
    * (C1) `x` has rank 4, and `weights` the shape [D, G * H, H]; both have the element type of `result`; T is at least 1.
    * (C2) `result` has the shape [T + S, D, B, H].
    * (C3) `lengths`, `initial`, `initial_cell`, `peepholes` and `hidden_bias` have the shapes above and x's element type (`lengths`: i32).
    * (C4) only a gru has `hidden_bias`; only an lstm has `initial_cell`, `peepholes` or `coupled`.
    * (C5) `reversed` has D entries, `functions` has 1, 2 or 3 (rnn, gru, lstm) for each direction; `clip` is not negative.

    Sharding: `([m,i,j,l],[j,l,k])->([n,j,i,k]) replicated={k,l,m,n}`. The batch
    passes through. So do the directions, if they all have the same functions
    and are all reversed or all not.

    ```mlir
    %r = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>]
      : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
    ```
  }];
  let noDerivative = "it is written step by step where it is differentiated, and the steps have one";
  let arguments = (ins NN_CellAttr:$cell, NN_FloatTensor:$x, NN_FloatTensor:$weights,
    Optional<StaticShapeTensorOf<[I32]>>:$lengths, Optional<NN_FloatTensor>:$initial,
    Optional<NN_FloatTensor>:$initial_cell, Optional<NN_FloatTensor>:$peepholes,
    Optional<NN_FloatTensor>:$hidden_bias,
    DenseBoolArrayAttr:$reversed, NN_GateFunctions:$functions, UnitAttr:$coupled,
    DefaultValuedAttr<F64Attr, "0.0">:$clip);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $cell $x `,` $weights (`lengths` $lengths^ `:` type($lengths))? (`initial` $initial^ `:` type($initial))?
    (`initial_cell` $initial_cell^ `:` type($initial_cell))? (`peepholes` $peepholes^ `:` type($peepholes))?
    (`reset_after` $hidden_bias^ `:` type($hidden_bias))?
    `reversed` $reversed `functions` $functions (`coupled` $coupled^)? attr-dict
    `:` type($x) `,` type($weights) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getNumSteps() { return getX().getType().getDimSize(0); }
    int64_t getNumDirections() { return getWeights().getType().getDimSize(0); }
    int64_t getHiddenSize() { return getWeights().getType().getDimSize(2); }
    /// The functions of a direction: 1, 2, 3 for rnn, gru, lstm.
    static int64_t getNumFunctions(Cell cell) { return static_cast<int64_t>(cell) + 1; }
    static int64_t getNumGates(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::gru ? 3 : 4; }
    static int64_t getNumFinalStates(Cell cell) { return cell == Cell::lstm ? 2 : 1; }
  }];
}

#endif // PARTITA_DIALECTS_NN_NNRECURRENT_TD

//===- Passes.td - Passes that differentiate a model ---------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_PASSES_TD
#define PARTITA_COMPILER_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

class AutodiffPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::partita::nn::NNDialect"];
}

def ChooseParametersPass : AutodiffPass<"nn-choose-parameters"> {
  let summary = "decide which weights are trained";
  let description = [{
    Every weight gets `nn.trained`, or `nn.untrained` with the reason. Trained
    are weights of floats of rank 1 and more, except masks (every element is 0
    or 1, or 0 or a large negative number, and both occur), running statistics
    (`nn.statistic` on a parameter), and what the options say. Where the model
    says what a weight is (`nn.declared`), parameters are trained, whatever they
    look like, and buffers and constants are not.

    ```mlir
    nn.weight @w "w" : tensor<4x2xf32> in "m.onnx" at 0 bytes 32
    nn.weight @t "t" : tensor<2xi64> in "m.onnx" at 32 bytes 16
    // becomes
    nn.weight @w "w" : tensor<4x2xf32> in "m.onnx" at 0 bytes 32 {nn.trained}
    nn.weight @t "t" : tensor<2xi64> in "m.onnx" at 32 bytes 16 {nn.untrained = "its elements are no floats"}
    ```
  }];
  let options = [
    ListOption<"freeze", "freeze", "std::string", "globs of parameters that are not trained">,
    ListOption<"trainOnly", "train-only", "std::string", "globs of the parameters that are trained; empty: all that can be">
  ];
}

def AddLossPass : AutodiffPass<"nn-add-loss"> {
  let summary = "put a loss in the place of the model's outputs";
  let description = [{
    The function gets the input that the loss compares with, if there is one,
    and has one result, `loss`. A loss mixes samples, so no dimension of inputs
    and results counts samples any more. Of replicas that share a batch each
    computes the loss of its own samples, and they add up sums and counts. An
    evaluation also counts labels: those that are not ignored, and of these the
    ones whose score is the largest, or one of the five largest. Of equal scores
    the first class has the larger one, and NaN predicts nothing.

    ```mlir
    func.func @main(%x: ...) -> (tensor<8x10xf32> {nn.name = "y"})
    // becomes, with loss=mse:y
    func.func @main(%x: ..., %target: tensor<8x10xf32> {nn.name = "target"}) -> (tensor<f32> {nn.name = "loss"})
    ```
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"\"", "KIND:OUTPUT[:INPUT][,OPTION=VALUE...]">,
    Option<"parts", "parts", "bool", "false", "results `loss.sum`, and `loss.count` if the loss is their quotient">,
    Option<"evaluate", "evaluate", "bool", "false", "the same, and of a loss that compares with labels `labels.count`, `labels.right` and `labels.right_of_five`">
  ];
}

def ExpandAttentionPass : AutodiffPass<"nn-expand-attention"> {
  let summary = "write attention as products and a softmax";
  let description = [{
    The derivatives of these are those of attention, and the softmax is computed
    once for both directions.

    ```mlir
    %r = nn.attention %q, %k, %v scale 0.125 : ...
    // becomes
    %s = nn.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : ...
    %c = nn.constant dense<0.125> : tensor<1x2x8x8xf32>
    %t = nn.mul %s, %c : tensor<1x2x8x8xf32>
    %p = nn.softmax %t dim 3 : tensor<1x2x8x8xf32>
    %r = nn.dot %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : ...
    ```
  }];
}

def ExpandRecurrentPass : AutodiffPass<"nn-expand-recurrent"> {
  let summary = "write recurrent layers that are differentiated step by step";
  let description = [{
    A layer keeps none of the states and gates between its steps, which its
    derivative needs. So it becomes as many steps of products and pointwise ops
    as it has. Layers before everything that is trained stay as they are.

    With `doubles` the layers of f64 become steps, whoever reads them, and no
    others: kernels and libraries compute recurrent layers in f32.

    ```mlir
    %r = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>]
      : tensor<2x1x1x4xf32>, tensor<1x4x4xf32> -> tensor<3x1x1x4xf32>
    // becomes, for each of the two steps,
    %x0 = nn.slice %x [0, 0, 0, 0] : [1, 1, 1, 4] : ...
    %p0 = nn.dot %h, %w batch [] x [] contract [1] x [1] : ...
    %s0 = nn.add %x0, %p0 : tensor<1x4xf32>
    %h0 = nn.tanh %s0 : tensor<1x4xf32>
    ```
  }];
  let options = [Option<"inputs", "inputs", "bool", "false", "inputs of floats are differentiated, too">,
    Option<"doubles", "doubles", "bool", "false", "layers of f64, and no others">];
}

def ResolveGradientsPass : AutodiffPass<"nn-resolve-gradients"> {
  let summary = "compute the gradients that the model itself asks for";
  let description = [{
    Each `nn.gradient` becomes the derivative that it stands for, in the order of
    the block: so one of a gradient is a second derivative. Attention and
    recurrent layers on the way are written in parts, as for
    `--nn-differentiate`. Then each `nn.variable` becomes its operand.

    ```mlir
    %v = nn.variable %x number 0 : tensor<4xf32>
    %y = nn.exp %v : tensor<4xf32>
    %g = nn.gradient %y to %v : tensor<4xf32>, (tensor<4xf32>) -> tensor<4xf32>
    return %g : tensor<4xf32>
    // becomes
    %y = nn.exp %x : tensor<4xf32>
    return %y : tensor<4xf32>
    ```
  }];
}

def DifferentiatePass : AutodiffPass<"nn-differentiate"> {
  let summary = "compute the gradient of each trained parameter";
  let description = [{
    The function's one result is a loss. It gets a result `NAME.grad` for each
    weight that has `nn.trained` and that the loss depends on. A weight that the
    loss does not depend on gets `nn.untrained`. Each op is asked for its
    vector-Jacobian product (`DifferentiableOpInterface`), in reverse order.
    The ops of a product have the location of the op that they differentiate.
    With replicas that share a batch a gradient is the sum of those of all
    replicas (`dist::DifferentiableOpInterface`); the loss must be the same on
    all of them.

    ```mlir
    func.func @main(%x: tensor<2x4xf32>) -> (tensor<f32> {nn.name = "loss"}) {
      %w = nn.parameter @w : tensor<4xf32>
      %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : ...
      %1 = nn.reduce sum %0 [0] : tensor<2xf32> -> tensor<f32>
      return %1 : tensor<f32>
    }
    // becomes
    func.func @main(%x: tensor<2x4xf32>) -> (tensor<f32> {nn.name = "loss"}, tensor<4xf32> {nn.name = "w.grad"}) {
      %w = nn.parameter @w : tensor<4xf32>
      %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : ...
      %1 = nn.reduce sum %0 [0] : tensor<2xf32> -> tensor<f32>
      %c = nn.constant dense<1.0> : tensor<2xf32>
      %2 = nn.dot %c, %x batch [] x [] contract [0] x [0] : ...
      return %1, %2 : tensor<f32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"inputs", "inputs", "bool", "false", "gradients of inputs of floats, too">,
    Option<"mark", "mark", "bool", "false", "locations say what is a derivative, and of which node's result a cotangent is">];
}

#endif // PARTITA_COMPILER_AUTODIFF_PASSES_TD

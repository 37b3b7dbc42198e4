//===- Passes.td - Passes that make a step of training -------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_PASSES_TD
#define PARTITA_COMPILER_TRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

class TrainPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::partita::nn::NNDialect", "::partita::dist::DistDialect"];
}

def AddOptimizerPass : TrainPass<"nn-add-optimizer"> {
  let summary = "let a step write what it has learned";
  let description = [{
    The function's results are a loss (`loss.sum`, perhaps with `loss.count`)
    and the gradient of each weight that has `nn.trained`, of one micro-batch.
    They become the loss of a step, and a result with `nn.state` for each trained
    weight and for what the optimizer keeps of it. The weights become states. The
    loss and the gradients are sums over the micro-batches; a mean is one over
    all samples of the step. If several nodes read a weight, there is a sum for
    each of them, and these are added up. `nn.gradient_of` says of which weight a
    sum is the gradient.

    The function gets inputs for what changes from step to step, as f64:
    `learning_rate` and `weight_decay`, with an element for all parameters and
    then one for each group, and `step`, which counts from 1.

    With a clipping norm there is a result `gradient_norm`.

    With `guard-states` there is one, too, and a step changes no state if its
    loss or the norm of its gradients is not finite. `nn.guard` is on the
    choices between the old and the new value of running statistics.

    ```mlir
    func.func @main(%x: ...) -> (tensor<f32> {nn.name = "loss.sum"}, tensor<4xf32> {nn.name = "w.grad"}) {
      %w = nn.parameter @w : tensor<4xf32>
      ...
      return %l, %g : tensor<f32>, tensor<4xf32>
    }
    // becomes
    func.func @main(%x: ..., %rate: tensor<1xf64> {nn.name = "learning_rate", nn.per_step}, ...)
        -> (tensor<f32> {nn.name = "loss", nn.per_step}, tensor<4xf32> {nn.state = @w}) {
      %w = nn.parameter state @w : tensor<4xf32>
      ...
      %0 = nn.sum_micro_batches %l : tensor<f32>
      %1 = nn.sum_micro_batches %g {nn.gradient_of = @w} : tensor<4xf32>
      %2 = nn.mul %r, %1 : tensor<4xf32>
      %3 = nn.sub %w, %2 : tensor<4xf32>
      return %0, %3 : tensor<f32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"sgd\"", "KIND[,KEY=VALUE...]">,
    ListOption<"groups", "groups", "std::string", "GLOB[|GLOB...][;KEY=VALUE...]: the first that matches holds">,
    Option<"clipNorm", "clip-norm", "double", "0", "the largest norm of all gradients together; 0: none">,
    Option<"microBatches", "micro-batches", "int64_t", "1", "of a step">,
    Option<"guardStates", "guard-states", "bool", "false", "a step that is not finite changes no state">,
    Option<"onHost", "on-host", "bool", "false", "what the optimizer keeps lies in the host's memory, where devices can reach that">
  ];
}

def SumGradientsPass : TrainPass<"nn-sum-gradients"> {
  let summary = "make the loss and the gradients those of several micro-batches";
  let description = [{
    The function's results are a loss (`loss.sum`, perhaps with `loss.count`)
    and gradients, of one micro-batch. They become those of a step: sums over
    its micro-batches; a mean is one over all samples of the step. Dimension 0
    of every input counts samples.

    ```mlir
    func.func @main(%x: tensor<2x4xf32> ...) -> (tensor<f32> {nn.name = "loss.sum"}, tensor<4xf32> {nn.name = "w.grad"}) {
      ...
      return %l, %g : tensor<f32>, tensor<4xf32>
    }
    // becomes
    func.func @main(%x: tensor<2x4xf32> {nn.batch_axis = 0 : i64} ...)
        -> (tensor<f32> {nn.name = "loss", nn.per_step}, tensor<4xf32> {nn.name = "w.grad", nn.per_step}) {
      ...
      %0 = nn.sum_micro_batches %l : tensor<f32>
      %1 = nn.sum_micro_batches %g : tensor<4xf32>
      return %0, %1 : tensor<f32>, tensor<4xf32>
    }
    ```
  }];
  let options = [Option<"microBatches", "micro-batches", "int64_t", "1", "of a step">];
}

def MarkStatesPass : TrainPass<"nn-mark-states"> {
  let summary = "make states of the weights that are trained";
  let description = [{
    For a plan that reads what another plan of the artifact trains.

    ```mlir
    nn.weight @w "w" : tensor<4xf32> in "m.onnx" at 0 bytes 16 {nn.trained}
    // becomes
    nn.weight state @w "w" : tensor<4xf32> in "m.onnx" at 0 bytes 16 {nn.trained}
    ```
  }];
}

def ChooseInitialValuesPass : TrainPass<"nn-choose-initial-values"> {
  let summary = "say what states are drawn from when training begins";
  let description = [{
    Each state that an entry names gets `nn.initial`, but for what the optimizer
    keeps. The last entry that matches holds. `default` is what the importer
    noted of the layer (`nn.default_initial`).

    ```mlir
    nn.weight state @w "w" : tensor<4xf32> in "m.onnx" at 0 bytes 16
    // becomes, with init=*=normal;std=0.5,
    nn.weight state @w "w" : tensor<4xf32> in "m.onnx" at 0 bytes 16 {nn.initial = "normal,mean=0,std=0.5"}
    ```
  }];
  let options = [ListOption<"init", "init", "std::string", "GLOB=KIND[;KEY=VALUE...]">];
}

def FormAccumulatorsPass : TrainPass<"nn-form-accumulators"> {
  let summary = "sum over micro-batches as they are computed";
  let description = [{
    If a step has several micro-batches (`dist.micro_batches`), each sum over
    them gets an accumulator.

    ```mlir
    %s = nn.sum_micro_batches %g : tensor<4xf32>
    // becomes
    %a = nn.accumulator 0 : tensor<4xf32>
    %n = nn.add %a, %g : tensor<4xf32>
    %s = nn.sum_micro_batches %n in %a : tensor<4xf32> : tensor<4xf32>
    ```

    What is the same in each micro-batch is multiplied by their number instead.

    With `dist.reproducible` an accumulator has lanes: 8 for all replicas
    together, so that `--nn-combine-lanes` and the replicas' collectives add them
    up in one tree for 1, 2, 4 and 8 of them.
  }];
}

def ScatterUponSumsPass : TrainPass<"nn-scatter-upon-sums"> {
  let summary = "add rows where the sums over micro-batches lie";
  let description = [{
    The gradient of a table is a scatter upon zeros. If it is added to an
    accumulator, and does nothing else, the accumulator takes the place of the
    zeros. So a micro-batch touches the rows that it has read, and no other
    tensor has the table's size.

    ```mlir
    %g = nn.scatter %zeros %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
    %n = nn.add %a, %g : tensor<9x4xf32>
    // becomes
    %n = nn.scatter %a %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
    ```

    Where tensors are cut, a collective may stand between the two. So this comes
    behind the cuts.
  }];
}

def CombineLanesPass : TrainPass<"nn-combine-lanes"> {
  let summary = "add the lanes of sums over micro-batches up";
  let description = [{
    In a tree: lane c and lane c + n / 2 of n, then of those the first half and
    the second, and so on. A lane that there is not is left out.

    ```mlir
    %s = nn.sum_micro_batches %n in %a : tensor<4xf32> : tensor<4xf32>
    // becomes, if %a has three lanes,
    %0 = nn.sum_micro_batches %n in %a : tensor<4xf32> lane 0 : tensor<4xf32>
    %1 = nn.sum_micro_batches %n in %a : tensor<4xf32> lane 2 : tensor<4xf32>
    %2 = nn.add %0, %1 {nn.cluster = #nn.cluster<7, kernel>} : tensor<4xf32>
    %3 = nn.sum_micro_batches %n in %a : tensor<4xf32> lane 1 : tensor<4xf32>
    %s = nn.add %2, %3 {nn.cluster = #nn.cluster<7, kernel>} : tensor<4xf32>
    ```
  }];
}

#endif // PARTITA_COMPILER_TRAIN_PASSES_TD

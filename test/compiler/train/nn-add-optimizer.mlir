// RUN: partita-opt --nn-add-optimizer=optimizer=sgd %s | FileCheck %s --check-prefix=SGD
// RUN: partita-opt "--nn-add-optimizer=optimizer=adamw,betas=0.8:0.9 groups=b*;weight_decay=0 clip-norm=1 micro-batches=4" %s | FileCheck %s --check-prefix=ADAMW
// RUN: partita-opt "--nn-add-optimizer=optimizer=sgd,momentum=0.9 guard-states" %s | FileCheck %s --check-prefix=GUARD
// RUN: partita-opt "--nn-add-optimizer=optimizer=sgd,momentum=0.9 on-host" %s | FileCheck %s --check-prefix=HOST
// RUN: not partita-opt --nn-add-optimizer=optimizer=sgdd %s 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not partita-opt --nn-add-optimizer=optimizer=sgd,beta=1 %s 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: not partita-opt --nn-add-optimizer=optimizer=sgd,momentum=-1 %s 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not partita-opt "--nn-add-optimizer=optimizer=sgd groups=c*;weight_decay=0" %s 2>&1 | FileCheck %s --check-prefix=GROUP

// KIND: --optimizer: 'sgdd' is no optimizer; there are sgd, adam, adamw, adagrad
// SETTING: --optimizer: 'beta=1' is no setting of sgd; its settings are learning_rate, weight_decay, momentum, dampening, nesterov
// NUMBER: --optimizer: momentum is '-1'; it is a number of at least 0
// GROUP: --group c* names no parameter; --list-parameters lists them

// The step's loss is a mean over all of its samples.
// SGD: dist.full_steps
// SGD: nn.weight state @w "w"
// SGD: func.func @main(
// SGD-SAME: tensor<1xf64> {nn.name = "learning_rate", nn.per_step,
// SGD-SAME: tensor<1xf64> {nn.name = "weight_decay", nn.per_step,
// SGD-SAME: tensor<f64> {nn.name = "step", nn.per_step,
// SGD-SAME: -> (tensor<f32> {nn.name = "loss", nn.per_step, nn.port = 0 : i64}, tensor<4xf32> {nn.state = @w}, tensor<2xf32> {nn.state = @b}, tensor<1x2xi64> {nn.check
// SGD: %[[W:.*]] = nn.parameter state @w
// SGD-DAG: %[[COUNT:.*]] = nn.sum_micro_batches %{{.*}} : tensor<f32>
// SGD-DAG: nn.div %{{.*}}, %{{.*}} : tensor<f32>
// SGD-DAG: nn.sum_micro_batches %{{.*}} : tensor<4xf32>
// SGD: nn.sub %[[W]], %{{.*}} : tensor<4xf32>

// HOST: nn.weight state @w "w" {{.*}} {nn.trained}
// HOST: nn.weight state @w.momentum_buffer {{.*}} {nn.on_host, nn.role = "optimizer"}

// Two rates: of all parameters, and of the group. Two moments a parameter.
// ADAMW: nn.weight state @w.exp_avg "w/exp_avg" : tensor<4xf32> = dense<0.000000e+00> : tensor<4xf32> {nn.role = "optimizer"}
// ADAMW: nn.weight state @w.exp_avg_sq "w/exp_avg_sq"
// ADAMW: tensor<2xf64> {nn.name = "learning_rate", nn.per_step,
// ADAMW-SAME: {nn.name = "gradient_norm", nn.per_step
// ADAMW-SAME: tensor<4xf32> {nn.state = @w}, tensor<4xf32> {nn.state = @w.exp_avg}, tensor<4xf32> {nn.state = @w.exp_avg_sq}
// ADAMW-SAME: dist.micro_batches = 4
// ADAMW: nn.sqrt %{{.*}} : tensor<f64>

// The update reads gradients that wait for the norm, and states keep their values.
// GUARD: {nn.name = "gradient_norm", nn.per_step
// GUARD-SAME: tensor<4xf32> {nn.state = @w}, tensor<4xf32> {nn.state = @w.momentum_buffer}
// GUARD: %[[W:.*]] = nn.parameter state @w
// GUARD: %[[NORM:.*]] = nn.sqrt %{{.*}} : tensor<f64>
// GUARD: nn.compare le %[[NORM]], %{{.*}} : tensor<f64> -> tensor<i1>
// GUARD: nn.and
// GUARD: nn.and
// GUARD: %[[FINITE:.*]] = nn.and %{{.*}}, %{{.*}} : tensor<i1>
// GUARD: %[[FIRST:.*]] = nn.broadcast %[[FINITE]] [] : tensor<i1> -> tensor<4xi1>
// GUARD: nn.select %[[FIRST]], %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<4xf32>
// GUARD: %[[NEXT:.*]] = nn.sub %[[W]], %{{.*}} : tensor<4xf32>
// GUARD: %[[CHOICE:.*]] = nn.broadcast %[[FINITE]] [] : tensor<i1> -> tensor<4xi1>
// GUARD: nn.select %[[CHOICE]], %[[NEXT]], %[[W]] : tensor<4xi1>, tensor<4xf32>
nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
nn.weight @b "b" : tensor<2xf32> = dense<1.0> : tensor<2xf32> {nn.trained}
func.func @main(%x: tensor<4xf32> {nn.name = "x", nn.port = 0 : i64})
    -> (tensor<f32> {nn.name = "loss.sum", nn.port = 0 : i64}, tensor<f32> {nn.loss_count, nn.name = "loss.count", nn.port = 1 : i64},
        tensor<4xf32> {nn.name = "w.grad", nn.port = 2 : i64}, tensor<2xf32> {nn.name = "b.grad", nn.port = 3 : i64},
        tensor<1x2xi64> {nn.check = {}}) {
  %w = nn.parameter @w : tensor<4xf32>
  %b = nn.parameter @b : tensor<2xf32>
  %c = nn.constant dense<0> : tensor<1x2xi64>
  %0 = nn.mul %w, %x : tensor<4xf32>
  %1 = nn.reduce sum %0 [0] : tensor<4xf32> -> tensor<f32>
  %2 = nn.reduce sum %x [0] : tensor<4xf32> -> tensor<f32>
  %3 = nn.exp %b : tensor<2xf32>
  return %1, %2, %x, %3, %c : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<2xf32>, tensor<1x2xi64>
}

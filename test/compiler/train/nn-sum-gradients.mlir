// RUN: partita-opt --nn-sum-gradients=micro-batches=3 --split-input-file --verify-diagnostics %s | FileCheck %s

// A mean is one over all samples of the step. Results that tell of wrong
// indices stay those of a micro-batch.
// CHECK: module attributes {dist.full_micro_batches, dist.full_steps}
// CHECK: func.func @main(
// CHECK-SAME: tensor<2x4xf32> {nn.batch_axis = 0 : i64, nn.name = "x",
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss", nn.per_step, nn.port = 0 : i64}, tensor<4xf64> {nn.name = "w.grad", nn.per_step, nn.port = 1 : i64}, tensor<1x2xi64> {nn.check = {}, nn.port = 2 : i64})
// CHECK-SAME: dist.micro_batches = 3
// CHECK-DAG: %[[N:.*]] = nn.sum_micro_batches %[[COUNT:.*]] : tensor<f32>
// CHECK-DAG: %[[L:.*]] = nn.sum_micro_batches %[[LOSS:.*]] : tensor<f32>
// CHECK-DAG: %[[LOSS]] = nn.reduce sum
// CHECK: %[[MEAN:.*]] = nn.div %[[L]], %[[N]] : tensor<f32>
// CHECK: %[[G:.*]] = nn.sum_micro_batches %{{.*}} : tensor<4xf64>
// CHECK: %[[WIDE:.*]] = nn.cast %[[N]] : tensor<f32> -> tensor<f64>
// CHECK: %[[ALL:.*]] = nn.broadcast %[[WIDE]]
// CHECK: %[[GRAD:.*]] = nn.div %[[G]], %[[ALL]] : tensor<4xf64>
// CHECK: return %[[MEAN]], %[[GRAD]], %{{.*}}
func.func @main(%x: tensor<2x4xf32> {nn.name = "x", nn.port = 0 : i64})
    -> (tensor<f32> {nn.name = "loss.sum", nn.port = 0 : i64}, tensor<f32> {nn.loss_count, nn.name = "loss.count", nn.port = 1 : i64},
        tensor<4xf64> {nn.name = "w.grad", nn.port = 2 : i64}, tensor<1x2xi64> {nn.check = {}, nn.port = 2 : i64}) {
  %c = nn.constant dense<0> : tensor<1x2xi64>
  %0 = nn.reduce sum %x [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %1 = nn.reduce max %x [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %2 = nn.reduce sum %x [0] : tensor<2x4xf32> -> tensor<4xf32>
  %3 = nn.cast %2 : tensor<4xf32> -> tensor<4xf64>
  return %0, %1, %3, %c : tensor<f32>, tensor<f32>, tensor<4xf64>, tensor<1x2xi64>
}

// -----

// A sum is divided by nothing.
// CHECK: func.func @main(
// CHECK-NOT: nn.div
// CHECK: nn.sum_micro_batches
func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss.sum"}, tensor<4xf32> {nn.name = "w.grad"}) {
  %0 = nn.reduce sum %x [0] : tensor<4xf32> -> tensor<f32>
  return %0, %x : tensor<f32>, tensor<4xf32>
}

// -----

// expected-error @unknown {{the input 'scale' has no dimension, and dimension 0 of every input counts samples}}
func.func @main(%x: tensor<f32> {nn.name = "scale"}) -> (tensor<f32> {nn.name = "loss.sum"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @unknown {{the model's first result is no loss}}
func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
  return %x : tensor<4xf32>
}

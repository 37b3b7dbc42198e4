// RUN: partita-opt --nn-add-loss=loss=mse:y --split-input-file %s | FileCheck %s
// RUN: partita-opt --nn-add-loss=loss=cross_entropy:y:labels --split-input-file %s | FileCheck %s --check-prefix=LABELS
// RUN: not partita-opt --nn-add-loss=loss=mse:z %s 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: --loss mse:z: the model has no output 'z'; its outputs are 'y', 'other'

// CHECK: func.func @main(%[[X:.*]]: tensor<4x3xf32> {nn.name = "x", nn.port = 0 : i64},
// CHECK-SAME: %[[T:.*]]: tensor<4x3xf32> {nn.name = "target", nn.port = 1 : i64})
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss", nn.port = 0 : i64})
// CHECK: nn.sub %{{.*}}, %[[T]] : tensor<4x3xf32>
// CHECK: nn.reduce sum %{{.*}} [0, 1] : tensor<4x3xf32> -> tensor<f32>

// LABELS: tensor<4xi64> {nn.name = "labels", nn.port = 1 : i64}
// LABELS: nn.softmax %{{.*}} dim 1 log
// LABELS: nn.gather_elements
func.func @main(%x: tensor<4x3xf32> {nn.name = "x", nn.port = 0 : i64, nn.batch_axis = 0 : i64})
    -> (tensor<4x3xf32> {nn.name = "y", nn.port = 0 : i64, nn.batch_axis = 0 : i64}, tensor<4x3xf32> {nn.name = "other", nn.port = 1 : i64, nn.batch_axis = 0 : i64}) {
  %0 = nn.relu %x : tensor<4x3xf32>
  return %0, %x : tensor<4x3xf32>, tensor<4x3xf32>
}

// RUN: partita-opt --nn-add-loss=loss=mse:y --split-input-file %s | FileCheck %s
// RUN: partita-opt --nn-add-loss=loss=cross_entropy:y:labels --split-input-file %s | FileCheck %s --check-prefix=LABELS
// RUN: partita-opt --nn-add-loss="loss=cross_entropy:y:labels evaluate" --split-input-file %s | FileCheck %s --check-prefix=EVALUATE
// RUN: not partita-opt --nn-add-loss=loss=mse:z --split-input-file %s 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: --loss mse:z: the model has no output 'z'; its outputs are 'y', 'other'

// CHECK: func.func @main(%[[X:.*]]: tensor<4x3xf32> {nn.name = "x", nn.port = 0 : i64},
// CHECK-SAME: %[[T:.*]]: tensor<4x3xf32> {nn.name = "target", nn.port = 1 : i64})
// CHECK-SAME: -> (tensor<f32> {nn.name = "loss", nn.port = 0 : i64})
// CHECK: nn.sub %{{.*}}, %[[T]] : tensor<4x3xf32>
// CHECK: nn.reduce sum %{{.*}} [0, 1] : tensor<4x3xf32> -> tensor<f32>

// LABELS: tensor<4xi64> {nn.name = "labels", nn.port = 1 : i64}
// LABELS: nn.softmax %{{.*}} dim 1 log
// LABELS: nn.gather_elements

// An evaluation counts labels, too: those before which no class has a score that is larger, or is as large and stands before it.
// EVALUATE: -> (tensor<f32> {nn.name = "loss.sum", {{.*}}}, tensor<f32> {nn.loss_count, nn.name = "loss.count", {{.*}}}, tensor<f32> {nn.name = "labels.count", {{.*}}}, tensor<f32> {nn.name = "labels.right", {{.*}}}, tensor<f32> {nn.name = "labels.right_of_five", {{.*}}})
// EVALUATE: nn.compare lt {{.*}} : tensor<4x3xi64> -> tensor<4x3xi1>
// EVALUATE: nn.compare gt
// EVALUATE: nn.reduce sum %{{.*}} [1] : tensor<4x3xf32> -> tensor<4xf32>
func.func @main(%x: tensor<4x3xf32> {nn.name = "x", nn.port = 0 : i64, nn.batch_axis = 0 : i64})
    -> (tensor<4x3xf32> {nn.name = "y", nn.port = 0 : i64, nn.batch_axis = 0 : i64}, tensor<4x3xf32> {nn.name = "other", nn.port = 1 : i64, nn.batch_axis = 0 : i64}) {
  %0 = nn.relu %x : tensor<4x3xf32>
  return %0, %x : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// Of replicas that share a batch, each computes the loss of its own samples.
// CHECK-LABEL: @replicas
// CHECK-SAME: %[[X:.*]]: tensor<4x3xf32> {nn.name = "x", nn.port = 0 : i64}, %[[T:.*]]: tensor<4x3xf32>
// CHECK-NOT: dist.all_gather
// CHECK: %[[T0:.*]] = dist.shard %[[T]] dim 0 blocks 1 axes ["replica"] : tensor<4x3xf32> -> tensor<2x3xf32>
// CHECK: nn.sub %{{.*}}, %[[T0]] : tensor<2x3xf32>
// CHECK: %[[OWN:.*]] = nn.reduce sum
// CHECK: dist.all_reduce sum %[[OWN]] axes ["replica"] reason "the loss is that of all replicas" : tensor<f32>
// CHECK: nn.constant dense<1.200000e+01>

// LABELS-LABEL: @replicas
// LABELS: dist.shard %{{.*}} dim 0 blocks 1 axes ["replica"] : tensor<4xi64> -> tensor<2xi64>
// LABELS: dist.all_reduce sum %{{.*}} reason "the loss is that of all replicas"
// EVALUATE-LABEL: @replicas
// EVALUATE: dist.all_reduce sum %{{.*}} reason "labels are counted over all replicas"
// EVALUATE: dist.all_reduce sum %{{.*}} reason "labels are counted over all replicas"
// EVALUATE: dist.all_reduce sum %{{.*}} reason "labels are counted over all replicas"
// EVALUATE: dist.all_reduce sum %{{.*}} reason "the loss is that of all replicas"
// LABELS: dist.all_reduce sum %{{.*}} reason "the loss is the mean over the samples of all replicas"
func.func @replicas(%x: tensor<4x3xf32> {nn.name = "x", nn.port = 0 : i64, nn.batch_axis = 0 : i64})
    -> (tensor<4x3xf32> {nn.name = "y", nn.port = 0 : i64, nn.batch_axis = 0 : i64}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<4x3xf32> -> tensor<2x3xf32>
  %1 = nn.relu %0 : tensor<2x3xf32>
  %2 = dist.all_gather %1 dim 0 blocks 1 axes ["replica"] reason "" : tensor<2x3xf32> -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}

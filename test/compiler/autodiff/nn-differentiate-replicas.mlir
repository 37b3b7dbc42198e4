// RUN: partita-opt --nn-differentiate=inputs=true --cse --split-input-file %s | FileCheck %s

// Each replica has its own samples, so it has a share of a weight's gradient;
// and a part of the gradient of the input that was dealt out.
// CHECK-LABEL: @weight
// CHECK-SAME: (%[[X:.*]]: tensor<4x3xf32>
// CHECK: %[[A:.*]] = dist.shard %[[X]]
// CHECK-DAG: %[[SHARE:.*]] = nn.dot {{.*}} -> tensor<3xf32>
// CHECK-DAG: %[[ALL:.*]] = dist.all_reduce sum %[[SHARE]] axes ["replica"] reason "the gradient of 'w' is the sum of those of all replicas" : tensor<3xf32>
// CHECK-DAG: %[[XS:.*]] = dist.all_gather {{.*}} axes ["replica"] reason {{.*}} : tensor<2x3xf32> -> tensor<4x3xf32>
// CHECK: return %{{.*}}, %[[ALL]], %[[XS]]
nn.weight @w "w" : tensor<3xf32> = dense<1.0> : tensor<3xf32> {nn.trained}
func.func @weight(%x: tensor<4x3xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %w = nn.parameter @w : tensor<3xf32>
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<4x3xf32> -> tensor<2x3xf32>
  %1 = nn.dot %0, %w batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<3xf32> -> tensor<2xf32>
  %2 = nn.reduce sum %1 [0] : tensor<2xf32> -> tensor<f32>
  %3 = dist.all_reduce sum %2 axes ["replica"] reason "loss" : tensor<f32>
  return %3 : tensor<f32>
}

// -----

// What all replicas compute alike needs no sum: the cotangent is whole.
// CHECK-LABEL: @whole
// CHECK: dist.all_reduce sum
// CHECK-NOT: dist.all_reduce
nn.weight @w "w" : tensor<3xf32> = dense<1.0> : tensor<3xf32> {nn.trained}
func.func @whole(%x: tensor<6xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %w = nn.parameter @w : tensor<3xf32>
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<6xf32> -> tensor<3xf32>
  %1 = dist.all_reduce sum %0 axes ["replica"] reason "" : tensor<3xf32>
  %2 = nn.mul %1, %w : tensor<3xf32>
  %3 = nn.reduce sum %2 [0] : tensor<3xf32> -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// A sum that meets samples: its cotangent is summed once.
// CHECK-LABEL: @share
// CHECK: dist.all_reduce sum
// CHECK: dist.all_reduce sum
// CHECK: dist.all_reduce sum %{{.*}} reason "the cotangent of 'sync' is the sum of the devices' shares"
// CHECK-NOT: dist.all_reduce
func.func @share(%x: tensor<6xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<6xf32> -> tensor<3xf32>
  %1 = dist.all_reduce sum %0 axes ["replica"] reason "" : tensor<3xf32> loc("sync")
  %2 = nn.mul %1, %0 : tensor<3xf32>
  %3 = nn.reduce sum %2 [0] : tensor<3xf32> -> tensor<f32>
  %4 = dist.all_reduce sum %3 axes ["replica"] reason "" : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// Shares are added up before they are rounded.
// CHECK-LABEL: @narrow
// CHECK: %[[ALL:.*]] = dist.all_reduce sum %{{.*}} reason "the cotangent of 'widened' is the sum of those of all replicas" : tensor<3xf32>
// CHECK: nn.cast %[[ALL]] : tensor<3xf32> -> tensor<3xf16>
nn.weight @w "w" : tensor<3xf16> = dense<1.0> : tensor<3xf16> {nn.trained}
func.func @narrow(%x: tensor<6xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %w = nn.parameter @w : tensor<3xf16>
  %0 = nn.cast %w : tensor<3xf16> -> tensor<3xf32> loc("widened")
  %1 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<6xf32> -> tensor<3xf32>
  %2 = nn.mul %0, %1 : tensor<3xf32>
  %3 = nn.reduce sum %2 [0] : tensor<3xf32> -> tensor<f32>
  %4 = dist.all_reduce sum %3 axes ["replica"] reason "" : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// What was gathered goes back by reduce_scatter; with a whole cotangent each
// takes its part, and nothing is sent.
// CHECK-LABEL: @gather
// CHECK: %[[G:.*]] = dist.all_gather
// CHECK: dist.reduce_scatter sum %{{.*}} dim 0 blocks 1 axes ["replica"] reason {{.*}} : tensor<6xf32> -> tensor<3xf32>
func.func @gather(%x: tensor<6xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<6xf32> -> tensor<3xf32>
  %1 = dist.all_gather %0 dim 0 blocks 1 axes ["replica"] reason "" : tensor<3xf32> -> tensor<6xf32>
  %2 = nn.dot %0, %1 batch [] x [] contract [] x [] : tensor<3xf32>, tensor<6xf32> -> tensor<3x6xf32>
  %3 = nn.reduce sum %2 [0, 1] : tensor<3x6xf32> -> tensor<f32>
  %4 = dist.all_reduce sum %3 axes ["replica"] reason "" : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// CHECK-LABEL: @gather_whole
// CHECK: dist.all_gather
// CHECK: dist.shard %{{.*}} dim 0 blocks 1 axes ["replica"] : tensor<6xf32> -> tensor<3xf32>
// CHECK-NOT: dist.reduce_scatter
func.func @gather_whole(%x: tensor<6xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<6xf32> -> tensor<3xf32>
  %1 = dist.all_gather %0 dim 0 blocks 1 axes ["replica"] reason "" : tensor<3xf32> -> tensor<6xf32>
  %2 = nn.mul %1, %1 : tensor<6xf32>
  %3 = nn.reduce sum %2 [0] : tensor<6xf32> -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// What was scattered is gathered.
// CHECK-LABEL: @scatter
// CHECK: dist.reduce_scatter sum
// CHECK: dist.all_gather %{{.*}} dim 0 blocks 1 axes ["replica"] reason {{.*}} : tensor<3xf32> -> tensor<6xf32>
func.func @scatter(%x: tensor<12xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<12xf32> -> tensor<6xf32>
  %1 = dist.reduce_scatter sum %0 dim 0 blocks 1 axes ["replica"] reason "" : tensor<6xf32> -> tensor<3xf32>
  %2 = nn.mul %1, %1 : tensor<3xf32>
  %3 = nn.reduce sum %2 [0] : tensor<3xf32> -> tensor<f32>
  %4 = dist.all_reduce sum %3 axes ["replica"] reason "" : tensor<f32>
  return %4 : tensor<f32>
}

// -----

// What was exchanged goes back where it had been cut off.
// CHECK-LABEL: @exchange
// CHECK: dist.all_to_all %{{.*}} dim 1 {{.*}} : tensor<3x4xf32> -> tensor<2x3x2xf32>
// CHECK: %[[B:.*]] = dist.all_to_all %{{.*}} dim 0 blocks 1 axes ["replica"] reason {{.*}} : tensor<2x3x2xf32> -> tensor<2x1x3x2xf32>
// CHECK: %[[P:.*]] = nn.reshape %[[B]] : tensor<2x1x3x2xf32> -> tensor<2x3x2xf32>
// CHECK: %[[T:.*]] = nn.transpose %[[P]] [1, 0, 2]
// CHECK: nn.reshape %[[T]] : tensor<3x2x2xf32> -> tensor<3x4xf32>
func.func @exchange(%x: tensor<6x4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<6x4xf32> -> tensor<3x4xf32>
  %1 = dist.all_to_all %0 dim 1 blocks 1 axes ["replica"] reason "" : tensor<3x4xf32> -> tensor<2x3x2xf32>
  %2 = nn.mul %1, %1 : tensor<2x3x2xf32>
  %3 = nn.reduce sum %2 [0, 1, 2] : tensor<2x3x2xf32> -> tensor<f32>
  %4 = dist.all_reduce sum %3 axes ["replica"] reason "" : tensor<f32>
  return %4 : tensor<f32>
}

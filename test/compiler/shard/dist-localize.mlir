// RUN: partita-opt -split-input-file --dist-propagate --dist-reshard --dist-localize %s | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x8xf32>
// A device reads its part of each weight.
// CHECK: %[[W1:.*]] = dist.shard %{{.*}} dim 1 blocks 1 axes ["tensor"] : tensor<8x16xf32> -> tensor<8x8xf32>
// CHECK: %[[W2:.*]] = dist.shard %{{.*}} dim 0 blocks 1 axes ["tensor"] : tensor<16x8xf32> -> tensor<8x8xf32>
// CHECK: %[[A:.*]] = nn.dot %arg0, %[[W1]] {{.*}} -> tensor<4x8xf32>
// CHECK: %[[B:.*]] = nn.relu %[[A]] : tensor<4x8xf32>
// CHECK: %[[C:.*]] = nn.dot %[[B]], %[[W2]]
// CHECK: %[[D:.*]] = dist.all_reduce sum %[[C]] axes ["tensor"] reason "'fc2' sums over what is cut along tensor" : tensor<4x8xf32>
// CHECK: return %[[D]]
nn.weight @w1 "fc1.weight" : tensor<8x16xf32> = dense<1.0> : tensor<8x16xf32>
nn.weight @w2 "fc2.weight" : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x8xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w1 = nn.parameter @w1 {dist.sharding = #dist.sharding<[{}, {"tensor"}]>} : tensor<8x16xf32>
  %w2 = nn.parameter @w2 : tensor<16x8xf32>
  %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("fc1")
  %1 = nn.relu %0 : tensor<4x16xf32> loc("relu")
  %2 = nn.dot %1, %w2 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32> loc("fc2")
  return %2 : tensor<4x8xf32>
}

// -----

// A tensor that is cut in one dimension, and needed cut in another one. Parts
// that were rounded up are padded before, or cut off behind.
// CHECK-LABEL: func.func @main(%arg0: tensor<2x6x7xf32> {nn.name = "x"})
// CHECK: %[[X:.*]] = dist.shard %arg0 dim 1 blocks 1 axes ["tensor"] : tensor<2x6x7xf32> -> tensor<2x2x7xf32>
// CHECK: %[[R:.*]] = nn.relu %[[X]] : tensor<2x2x7xf32>
// CHECK: %[[P:.*]] = nn.pad %[[R]], %{{.*}} low [0, 0, 0] high [0, 0, 1] : tensor<2x2x7xf32>, tensor<f32> -> tensor<2x2x8xf32>
// CHECK: %[[A:.*]] = dist.all_to_all %[[P]] dim 2 blocks 1 axes ["tensor"] reason "'turn' reads it cut along tensor in dimension 2" : tensor<2x2x8xf32> -> tensor<4x2x2x2xf32>
// CHECK: nn.transpose %{{.*}} [1, 0, 2] : tensor<4x2x4xf32> -> tensor<2x4x4xf32>
// CHECK: nn.reshape %{{.*}} : tensor<2x4x4xf32> -> tensor<2x8x2xf32>
// CHECK: nn.slice %{{.*}} : tensor<2x8x2xf32> -> tensor<2x6x2xf32>
func.func @main(%x: tensor<2x6x7xf32> {nn.name = "x", dist.sharding = #dist.sharding<[{}, {"tensor"}, {}]>}) -> tensor<2x6x7xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 4>]} {
  %0 = nn.relu %x : tensor<2x6x7xf32> loc("relu")
  %1 = nn.exp %0 {dist.sharding = #dist.sharding<[{}, {}, {"tensor"}]>} : tensor<2x6x7xf32> loc("turn")
  return %1 : tensor<2x6x7xf32>
}

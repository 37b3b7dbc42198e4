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

// -----

// A table cut by rows: a device looks up what lies in its part, which begins
// where its part of a list says, and has -0 for the rest.
// CHECK-LABEL: func.func @main(%arg0: tensor<5xi64> {nn.name = "ids"})
// CHECK: %[[ROWS:.*]] = dist.shard %{{.*}} dim 0 blocks 1 axes ["tensor"] : tensor<7x8xf32> -> tensor<4x8xf32>
// CHECK: %[[ALL:.*]] = nn.constant dense<[0, 4]> : tensor<2xi64>
// CHECK: %[[OWN:.*]] = dist.shard %[[ALL]] dim 0 blocks 1 axes ["tensor"] : tensor<2xi64> -> tensor<1xi64>
// CHECK: %[[BEGIN:.*]] = nn.reshape %[[OWN]]
// CHECK: %[[BEGINS:.*]] = nn.broadcast %[[BEGIN]]
// CHECK: %[[PLACE:.*]] = nn.sub %{{.*}}, %[[BEGINS]]
// CHECK: %[[INSIDE:.*]] = nn.and
// CHECK: %[[OWNPLACE:.*]] = nn.select %[[INSIDE]], %[[PLACE]]
// CHECK: %[[FOUND:.*]] = nn.gather %[[ROWS]], %[[OWNPLACE]] dim 0
// CHECK: %[[KEEP:.*]] = nn.broadcast %[[INSIDE]]
// CHECK: %[[NONE:.*]] = nn.constant dense<-0.000000e+00> : tensor<5x8xf32>
// CHECK: %[[PART:.*]] = nn.select %[[KEEP]], %[[FOUND]], %[[NONE]]
// CHECK: dist.all_reduce sum %[[PART]]
nn.weight @t "table" : tensor<7x8xf32> = dense<1.0> : tensor<7x8xf32>
func.func @main(%ids: tensor<5xi64> {nn.name = "ids"}) -> tensor<5x8xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %t = nn.parameter @t {dist.sharding = #dist.sharding<[{"tensor"}, {}]>} : tensor<7x8xf32>
  %0 = nn.gather %t, %ids dim 0 : tensor<7x8xf32>, tensor<5xi64> -> tensor<5x8xf32>
  return %0 : tensor<5x8xf32>
}

// -----

// What is summed over, and was rounded up, is masked: but for a weight, which
// is 0 beyond the end anyway.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x7xf32> {nn.name = "x"})
// CHECK: %[[X:.*]] = dist.shard %arg0 {{.*}} : tensor<4x7xf32> -> tensor<4x4xf32>
// CHECK: %[[W:.*]] = dist.shard %{{.*}} : tensor<7x3xf32> -> tensor<4x3xf32>
// CHECK: %[[E:.*]] = nn.exp %[[X]]
// CHECK: %[[ONES:.*]] = nn.constant dense<true> : tensor<7xi1>
// CHECK: %[[MASK:.*]] = dist.shard %[[ONES]] dim 0 blocks 1 axes ["tensor"] : tensor<7xi1> -> tensor<4xi1>
// CHECK: %[[KEEP:.*]] = nn.broadcast %[[MASK]]
// CHECK: %[[M:.*]] = nn.select %[[KEEP]], %[[E]]
// CHECK: nn.dot %[[M]], %[[W]]
nn.weight @w "w" : tensor<7x3xf32> = dense<1.0> : tensor<7x3xf32>
func.func @main(%x: tensor<4x7xf32> {nn.name = "x"}) -> tensor<4x3xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w {dist.sharding = #dist.sharding<[{"tensor"}, {}]>} : tensor<7x3xf32>
  %0 = nn.exp %x : tensor<4x7xf32>
  %1 = nn.dot %0, %w batch [] x [] contract [1] x [0] : tensor<4x7xf32>, tensor<7x3xf32> -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// From one weight: through the factors of the ops, forwards and backwards.
// RUN: partita-opt --dist-propagate %s | FileCheck %s

// CHECK: func.func @main(%{{.*}}: tensor<4x8xf32> {nn.name = "x"})
// CHECK: nn.parameter @w1 {dist.sharding = #dist.sharding<[{}, {"tensor"}]>}
// CHECK: nn.parameter @w2 {dist.sharding = #dist.sharding<[{"tensor"}, {}]>}
// CHECK: nn.dot {{.*}} {dist.sharding = #dist.sharding<[{}, {"tensor"}]>} : tensor<4x8xf32>
// CHECK: nn.relu {{.*}} {dist.sharding = #dist.sharding<[{}, {"tensor"}]>}
// CHECK: nn.dot
// CHECK-NOT: dist.sharding
// CHECK-SAME: : tensor<4x16xf32>
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

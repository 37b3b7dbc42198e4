// The first layer is cut by what it makes, so the second by what it sums over. A layer whose collective takes longer than what is saved stays whole.
// RUN: partita-opt --dist-choose-shardings --dist-propagate %s | FileCheck %s

nn.weight @w1 "w1" : tensor<1024x4096xf32> in "w" at 0 bytes 16777216
nn.weight @w2 "w2" : tensor<4096x1024xf32> in "w" at 0 bytes 16777216
nn.weight @w3 "w3" : tensor<1024x2xf32> in "w" at 0 bytes 8192
// CHECK: func.func @main
// CHECK-SAME: dist.shards = {w1 = #dist.sharding<[{}, {"tensor"}]>, w2 = #dist.sharding<[{"tensor"}, {}]>}
// CHECK-DAG: nn.parameter @w1 {dist.sharding = #dist.sharding<[{}, {"tensor"}]>}
// CHECK-DAG: nn.parameter @w2 {dist.sharding = #dist.sharding<[{"tensor"}, {}]>}
// CHECK-DAG: nn.parameter @w3 :
func.func @main(%x: tensor<2x1024xf32>) -> tensor<2x2xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w1 = nn.parameter @w1 : tensor<1024x4096xf32>
  %w2 = nn.parameter @w2 : tensor<4096x1024xf32>
  %w3 = nn.parameter @w3 : tensor<1024x2xf32>
  %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<2x1024xf32>, tensor<1024x4096xf32> -> tensor<2x4096xf32>
  %1 = nn.relu %0 : tensor<2x4096xf32>
  %2 = nn.dot %1, %w2 batch [] x [] contract [1] x [0] : tensor<2x4096xf32>, tensor<4096x1024xf32> -> tensor<2x1024xf32>
  %3 = nn.dot %2, %w3 batch [] x [] contract [1] x [0] : tensor<2x1024xf32>, tensor<1024x2xf32> -> tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
}

// RUN: partita-opt --dist-propagate --dist-reshard --dist-localize %s | FileCheck %s

// What crosses replicas passes the cuts of other dimensions through: each device has its part of each collective, and none gathers in between.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = nn.parameter @w
// CHECK: dist.shard %[[P]] dim 2 blocks 1 axes ["tensor"] : tensor<4x8x16xf32> -> tensor<4x8x8xf32>
// CHECK: dist.shard %{{.*}} dim 0 blocks 1 axes ["replica"] : tensor<4x8x8xf32> -> tensor<2x8x8xf32>
// CHECK: nn.dot {{.*}} -> tensor<2x3x8xf32>
// CHECK: dist.all_to_all %{{.*}} dim 1 blocks 1 axes ["replica"] reason "why" : tensor<2x4x8xf32> -> tensor<2x2x2x8xf32>
// CHECK: dist.all_reduce sum %{{.*}} axes ["replica"] reason "why" : tensor<2x2x2x8xf32>
// CHECK: dist.broadcast %{{.*}} root 1 axes ["replica"] reason "why" : tensor<2x2x2x8xf32>
// CHECK: dist.all_gather %{{.*}} dim 0 blocks 1 axes ["replica"] reason "why" : tensor<2x2x2x8xf32> -> tensor<4x2x2x8xf32>
// CHECK: dist.all_gather %{{.*}} dim 3 blocks 1 axes ["tensor"]
// CHECK-NEXT: return
nn.weight @w "w" : tensor<4x8x16xf32> = dense<1.0> : tensor<4x8x16xf32>
func.func @main(%x: tensor<2x3x8xf32>) -> tensor<4x2x2x16xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>, #dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {}, {"tensor"}]>} : tensor<4x8x16xf32>
  %own = dist.shard %w dim 0 blocks 1 axes ["replica"] : tensor<4x8x16xf32> -> tensor<2x8x16xf32>
  %0 = nn.dot %x, %own batch [0] x [0] contract [2] x [1] : tensor<2x3x8xf32>, tensor<2x8x16xf32> -> tensor<2x3x16xf32>
  %1 = nn.slice %0 [0, 0, 0] to [2, 1, 16] by [1, 1, 1] : tensor<2x3x16xf32> -> tensor<2x1x16xf32>
  %2 = nn.concat %0, %1 dim 1 : (tensor<2x3x16xf32>, tensor<2x1x16xf32>) -> tensor<2x4x16xf32>
  %3 = dist.all_to_all %2 dim 1 blocks 1 axes ["replica"] reason "why" : tensor<2x4x16xf32> -> tensor<2x2x2x16xf32>
  %4 = dist.all_reduce sum %3 axes ["replica"] reason "why" : tensor<2x2x2x16xf32>
  %5 = dist.broadcast %4 root 1 axes ["replica"] reason "why" : tensor<2x2x2x16xf32>
  %6 = dist.all_gather %5 dim 0 blocks 1 axes ["replica"] reason "why" : tensor<2x2x2x16xf32> -> tensor<4x2x2x16xf32>
  return %6 : tensor<4x2x2x16xf32>
}

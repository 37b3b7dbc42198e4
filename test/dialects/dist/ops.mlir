// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: dist.mesh @d0 [0]
dist.mesh @d0 [0]
// CHECK: dist.mesh @d1 [1, 2] axes [#dist.axis<"data" = 2>]
dist.mesh @d1 [1, 2] axes [#dist.axis<"data" = 2>]
// CHECK: dist.mesh @d2 [3] kind "remote-cpu"
dist.mesh @d2 [3] kind "remote-cpu"

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d1> {
  // CHECK: dist.stage "F0" 0 on @d0 blocks ["B1"](%{{.*}}) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0>
  %0 = dist.stage "F0" 0 on @d0 blocks ["B1"] (%x) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0> {
  ^bb0(%a: tensor<8xf32>):
    %r = nn.relu %a : tensor<8xf32>
    dist.yield %r : tensor<8xf32>
  }
  // CHECK: dist.transfer %{{.*}} reason "F1 reads it" : <tensor<8xf32>, @d0> -> <tensor<8xf32>, @d1>
  %1 = dist.transfer %0 reason "F1 reads it" : !dist.placed<tensor<8xf32>, @d0> -> !dist.placed<tensor<8xf32>, @d1>
  return %1 : !dist.placed<tensor<8xf32>, @d1>
}

// CHECK-LABEL: func.func @sharded
// CHECK-SAME: dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]
func.func @sharded(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  // CHECK: nn.relu {{.*}} {dist.sharding = #dist.sharding<[{}, {"tensor"}] partial [#dist.partial<"expert" max>]>}
  %0 = nn.relu %x {dist.sharding = #dist.sharding<[{}, {"tensor"}] partial [#dist.partial<"expert" max>]>} : tensor<8x16xf32>
  // CHECK: dist.reshard %{{.*}} reason "why" {dist.sharding = #dist.sharding<[{"a", "b"}, {"tensor" blocks 4 alignment 2}]>} : tensor<8x16xf32>
  %1 = dist.reshard %0 reason "why" {dist.sharding = #dist.sharding<[{"a", "b"}, {"tensor" blocks 4 alignment 2}]>} : tensor<8x16xf32>
  // CHECK: dist.all_reduce max %{{.*}} axes ["tensor"] reason "why" : tensor<8x16xf32>
  %2 = dist.all_reduce max %1 axes ["tensor"] reason "why" : tensor<8x16xf32>
  // CHECK: dist.shard %{{.*}} dim 1 blocks 2 axes ["tensor"] : tensor<8x16xf32> -> tensor<8x8xf32>
  %3 = dist.shard %2 dim 1 blocks 2 axes ["tensor"] : tensor<8x16xf32> -> tensor<8x8xf32>
  // CHECK: dist.all_gather %{{.*}} dim 1 blocks 2 axes ["tensor"] reason "why" : tensor<8x8xf32> -> tensor<8x16xf32>
  %4 = dist.all_gather %3 dim 1 blocks 2 axes ["tensor"] reason "why" : tensor<8x8xf32> -> tensor<8x16xf32>
  // CHECK: dist.reduce_scatter sum %{{.*}} dim 0 blocks 1 axes ["tensor"] reason "why" : tensor<8x16xf32> -> tensor<4x16xf32>
  %5 = dist.reduce_scatter sum %4 dim 0 blocks 1 axes ["tensor"] reason "why" : tensor<8x16xf32> -> tensor<4x16xf32>
  // CHECK: dist.all_to_all %{{.*}} dim 1 blocks 2 axes ["tensor"] reason "why" : tensor<4x16xf32> -> tensor<2x4x8xf32>
  %6 = dist.all_to_all %5 dim 1 blocks 2 axes ["tensor"] reason "why" : tensor<4x16xf32> -> tensor<2x4x8xf32>
  return %2 : tensor<8x16xf32>
}

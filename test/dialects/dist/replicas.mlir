// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x6xf32>, %s: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  // CHECK: dist.replicate 2(%{{.*}}, %{{.*}}) dims [0, -1] results [0, -1] : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
  %0:2 = dist.replicate 2 (%x, %s) dims [0, -1] results [0, -1] : (tensor<4x6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>) {
  ^bb0(%a: tensor<2x6xf32>, %b: tensor<6xf32>):
    // CHECK: dist.replica.all_reduce mean %{{.*}} : tensor<2x6xf32>
    %m = dist.replica.all_reduce mean %a : tensor<2x6xf32>
    // CHECK: dist.replica.all_gather %{{.*}} dim 0 : tensor<2x6xf32> -> tensor<4x6xf32>
    %g = dist.replica.all_gather %m dim 0 : tensor<2x6xf32> -> tensor<4x6xf32>
    // CHECK: dist.replica.shard %{{.*}} dim 1 : tensor<4x6xf32> -> tensor<4x3xf32>
    %p = dist.replica.shard %g dim 1 : tensor<4x6xf32> -> tensor<4x3xf32>
    // CHECK: dist.replica.all_to_all %{{.*}} split 0 concat 1 replicas 2 : tensor<4x3xf32> -> tensor<2x6xf32>
    %t = dist.replica.all_to_all %p split 0 concat 1 replicas 2 : tensor<4x3xf32> -> tensor<2x6xf32>
    // CHECK: dist.replica.broadcast %{{.*}} root 1 : tensor<2x6xf32>
    %c = dist.replica.broadcast %t root 1 : tensor<2x6xf32>
    dist.yield %c, %b : tensor<2x6xf32>, tensor<6xf32>
  // CHECK: }, {
  }, {
  ^bb0(%a: tensor<2x6xf32>, %b: tensor<6xf32>):
    dist.yield %a, %b : tensor<2x6xf32>, tensor<6xf32>
  }
  // CHECK: dist.broadcast %{{.*}} root 1 axes ["replica"] reason "why" : tensor<6xf32>
  %1 = dist.broadcast %0#1 root 1 axes ["replica"] reason "why" : tensor<6xf32>
  return %0#0, %1 : tensor<4x6xf32>, tensor<6xf32>
}

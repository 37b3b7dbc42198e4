// RUN: partita-opt --dist-connect-replicas --split-input-file %s | FileCheck %s

// Each placeholder becomes a collective; a mean is a sum and a quotient.
// CHECK: module attributes {dist.full_micro_batches}
// CHECK-LABEL: func.func @all
// CHECK-SAME: (%[[X:.*]]: tensor<4x6xf32>, %[[S:.*]]: tensor<2x6xf32>)
// CHECK: %[[A:.*]] = dist.shard %[[X]] dim 0 blocks 1 axes ["replica"] : tensor<4x6xf32> -> tensor<2x6xf32>
// CHECK: %[[SUM:.*]] = dist.all_reduce sum %[[A]] axes ["replica"] reason "'mean' is all_reduce mean over the replicas" : tensor<2x6xf32>
// CHECK: %[[N:.*]] = nn.constant dense<2.000000e+00> : tensor<2x6xf32>
// CHECK: nn.div %[[SUM]], %[[N]]
// CHECK: dist.all_reduce max
// CHECK: dist.all_gather %{{.*}} dim 1 blocks 1 axes ["replica"] reason {{.*}} : tensor<2x6xf32> -> tensor<2x12xf32>
// CHECK: dist.broadcast %{{.*}} root 1 axes ["replica"]
// CHECK: %[[T:.*]] = dist.all_to_all %{{.*}} dim 1 blocks 1 axes ["replica"] reason {{.*}} : tensor<2x6xf32> -> tensor<2x2x3xf32>
// CHECK: nn.reshape %[[T]] : tensor<2x2x3xf32> -> tensor<4x3xf32>
// CHECK: %[[U:.*]] = dist.all_to_all %{{.*}} dim 0 blocks 1 axes ["replica"] reason {{.*}} : tensor<4x3xf32> -> tensor<2x2x3xf32>
// CHECK: %[[M:.*]] = nn.transpose %[[U]] [1, 0, 2] : tensor<2x2x3xf32> -> tensor<2x2x3xf32>
// CHECK: nn.reshape %[[M]] : tensor<2x2x3xf32> -> tensor<2x6xf32>
// CHECK: dist.shard %[[S]] dim 0 blocks 1 axes ["replica"] : tensor<2x6xf32> -> tensor<1x6xf32>
// CHECK: dist.all_gather %{{.*}} dim 0 blocks 1 axes ["replica"] reason "the output 'y' has the samples of all replicas" : tensor<2x6xf32> -> tensor<4x6xf32>
// CHECK-NOT: dist.replica
func.func @all(%x: tensor<4x6xf32>, %s: tensor<2x6xf32>) -> (tensor<4x6xf32> {nn.name = "y"}, tensor<2x12xf32>)
    attributes {dist.axes = [#dist.axis<"replica" = 2>, #dist.axis<"stage" = 0>]} {
  %0:2 = dist.replicate 2 (%x, %s) dims [0, -1] results [0, -1] : (tensor<4x6xf32>, tensor<2x6xf32>) -> (tensor<4x6xf32>, tensor<2x12xf32>) {
  ^bb0(%a: tensor<2x6xf32>, %b: tensor<2x6xf32>):
    %m = dist.replica.all_reduce mean %a : tensor<2x6xf32> loc("mean")
    %n = dist.replica.all_reduce max %m : tensor<2x6xf32>
    %g = dist.replica.all_gather %n dim 1 : tensor<2x6xf32> -> tensor<2x12xf32>
    %c = dist.replica.broadcast %a root 1 : tensor<2x6xf32>
    %t = dist.replica.all_to_all %c split 1 concat 0 replicas 2 : tensor<2x6xf32> -> tensor<4x3xf32>
    %u = dist.replica.all_to_all %t split 0 concat 1 replicas 2 : tensor<4x3xf32> -> tensor<2x6xf32>
    %p = dist.replica.shard %b dim 0 : tensor<2x6xf32> -> tensor<1x6xf32>
    %q = nn.slice %u [0, 0] to [1, 6] by [1, 1] : tensor<2x6xf32> -> tensor<1x6xf32>
    %r = nn.add %p, %q : tensor<1x6xf32>
    %w = nn.broadcast %r [0, 1] : tensor<1x6xf32> -> tensor<1x6xf32>
    %z = nn.concat %w, %w dim 0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
    dist.yield %z, %g : tensor<2x6xf32>, tensor<2x12xf32>
  }
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<2x12xf32>
}

// -----

// One replica crosses nothing.
// CHECK-LABEL: func.func @one
// CHECK-SAME: (%[[X:.*]]: tensor<2x6xf32>)
// CHECK-NEXT: return %[[X]]
func.func @one(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %0 = dist.replicate 1 (%x) dims [0] results [-1] : (tensor<2x6xf32>) -> tensor<2x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    %m = dist.replica.all_reduce mean %a : tensor<2x6xf32>
    dist.yield %m : tensor<2x6xf32>
  }
  return %0 : tensor<2x6xf32>
}

// -----

// Regions of replicas that compute the same are one program. A part of a tensor crosses nothing.
// CHECK-NOT: dist.full_micro_batches
// CHECK-LABEL: func.func @regions
// CHECK: dist.shard
// CHECK: dist.shard
// CHECK: nn.add
// CHECK-NOT: nn.add
func.func @regions(%x: tensor<4x6xf32>, %s: tensor<4x6xf32>) -> tensor<4x6xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.replicate 2 (%x, %s) dims [0, -1] results [0] : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>, %b: tensor<4x6xf32>):
    %p = dist.replica.shard %b dim 0 : tensor<4x6xf32> -> tensor<2x6xf32>
    %r = nn.add %a, %p : tensor<2x6xf32>
    dist.yield %r : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>, %b: tensor<4x6xf32>):
    %p = dist.replica.shard %b dim 0 : tensor<4x6xf32> -> tensor<2x6xf32>
    %r = nn.add %a, %p : tensor<2x6xf32>
    dist.yield %r : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

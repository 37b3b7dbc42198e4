// RUN: partita-opt --dist-combine-collectives --split-input-file %s | FileCheck %s

// Five small sums, the reader of the first among them: one.
// CHECK-LABEL: func.func @small
// CHECK: %[[A:.*]] = nn.reshape %{{.*}} : tensor<2x8xf32> -> tensor<16xf32>
// CHECK: %[[ALL:.*]] = nn.concat %[[A]], {{.*}} dim 0 : (tensor<16xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<48xf32>
// CHECK: %[[SUM:.*]] = dist.all_reduce sum %[[ALL]] axes ["tensor"] reason "a; b; c; d; e" : tensor<48xf32>
// CHECK: nn.slice %[[SUM]]
// CHECK: %[[FIRST:.*]] = nn.reshape {{.*}} -> tensor<2x8xf32>
// CHECK-COUNT-4: nn.slice %[[SUM]]
// CHECK: nn.relu %[[FIRST]]
// CHECK-NOT: dist.all_reduce
func.func @small(%x: tensor<2x8xf32>, %y: tensor<8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %0 = dist.all_reduce sum %x axes ["tensor"] reason "a" : tensor<2x8xf32>
  %1 = nn.relu %0 : tensor<2x8xf32>
  %2 = nn.neg %y : tensor<8xf32>
  %3 = dist.all_reduce sum %2 axes ["tensor"] reason "b" : tensor<8xf32>
  %4 = dist.all_reduce sum %y axes ["tensor"] reason "c" : tensor<8xf32>
  %5 = dist.all_reduce sum %y axes ["tensor"] reason "d" : tensor<8xf32>
  %6 = dist.all_reduce sum %y axes ["tensor"] reason "e" : tensor<8xf32>
  return %1, %3, %4, %5, %6 : tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Large ones take longer to copy.
// CHECK-LABEL: func.func @large
// CHECK-COUNT-4: dist.all_reduce
func.func @large(%x: tensor<1048576xf32>) -> (tensor<1048576xf32>, tensor<1048576xf32>, tensor<1048576xf32>, tensor<1048576xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %0 = dist.all_reduce sum %x axes ["tensor"] reason "a" : tensor<1048576xf32>
  %1 = dist.all_reduce sum %x axes ["tensor"] reason "b" : tensor<1048576xf32>
  %2 = dist.all_reduce sum %x axes ["tensor"] reason "c" : tensor<1048576xf32>
  %3 = dist.all_reduce sum %x axes ["tensor"] reason "d" : tensor<1048576xf32>
  return %0, %1, %2, %3 : tensor<1048576xf32>, tensor<1048576xf32>, tensor<1048576xf32>, tensor<1048576xf32>
}

// -----

// One that depends on another, and other reductions, stay apart.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: dist.all_reduce
// CHECK-NOT: nn.concat
func.func @apart(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %0 = dist.all_reduce sum %x axes ["tensor"] reason "a" : tensor<8xf32>
  %1 = nn.neg %0 : tensor<8xf32>
  %2 = dist.all_reduce sum %1 axes ["tensor"] reason "b" : tensor<8xf32>
  %3 = dist.all_reduce max %x axes ["tensor"] reason "c" : tensor<8xf32>
  %4 = dist.all_reduce sum %x axes ["tensor"] reason "d" : tensor<8xf32>
  return %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// What each micro-batch needs, and what the update computes, stay apart.
// CHECK-LABEL: func.func @rates
// CHECK-COUNT-2: dist.all_reduce
// CHECK-NOT: nn.concat
func.func @rates(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %0 = nn.sum_micro_batches %x : tensor<8xf32>
  %1 = dist.all_reduce sum %x axes ["tensor"] reason "a" : tensor<8xf32>
  %2 = dist.all_reduce sum %0 axes ["tensor"] reason "b" : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Stages are decided later: each of two may have one of these nodes. What one node sums stays with it.
// CHECK-LABEL: func.func @nodes
// CHECK-COUNT-2: dist.all_reduce {{.*}} : tensor<8xf32>
// CHECK: nn.concat
// CHECK: dist.all_reduce {{.*}} : tensor<32xf32>
// CHECK-NOT: dist.all_reduce
func.func @nodes(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>], dist.device_count = 2} {
  %0 = dist.all_reduce sum %x axes ["tensor"] reason "a" : tensor<8xf32> loc("a")
  %1 = dist.all_reduce sum %y axes ["tensor"] reason "b" : tensor<8xf32> loc("b")
  %2 = dist.all_reduce sum %x axes ["tensor"] reason "c" : tensor<8xf32> loc("c")
  %3 = dist.all_reduce sum %y axes ["tensor"] reason "c" : tensor<8xf32> loc("c")
  %4 = dist.all_reduce sum %x axes ["tensor"] reason "c" : tensor<8xf32> loc("c")
  %5 = dist.all_reduce sum %y axes ["tensor"] reason "c" : tensor<8xf32> loc("c")
  return %0, %1, %2, %3, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

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

// Numbers that are added to one another are added up once, the ones of other axes apart. What is read elsewhere stays as it is.
// CHECK-LABEL: func.func @numbers
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<f32>, %[[B:[a-z0-9]*]]: tensor<f32>, %[[C:[a-z0-9]*]]: tensor<f32>, %[[D:[a-z0-9]*]]: tensor<f64>, %[[E:[a-z0-9]*]]: tensor<f32>)
// CHECK: %[[E1:.*]] = dist.all_reduce sum %[[E]] axes ["data"] reason "e"
// CHECK: %[[E2:.*]] = nn.cast %[[E1]]
// CHECK: %[[A1:.*]] = nn.cast %[[A]] : tensor<f32> -> tensor<f64>
// CHECK: %[[B1:.*]] = nn.cast %[[B]] : tensor<f32> -> tensor<f64>
// CHECK: %[[AB:.*]] = nn.add %[[A1]], %[[B1]]
// CHECK: %[[SUM:.*]] = dist.all_reduce sum %[[AB]] axes ["data"] reason "a" : tensor<f64>
// CHECK: %[[C1:.*]] = nn.cast %[[C]]
// CHECK: %[[C2:.*]] = dist.all_reduce sum %[[C1]] axes ["tensor"] reason "c"
// CHECK: %[[DE:.*]] = nn.add %[[D]], %[[E2]]
// CHECK: %[[DES:.*]] = nn.add %[[DE]], %[[SUM]]
// CHECK: %[[ALL:.*]] = nn.add %[[DES]], %[[C2]]
// CHECK: return %[[ALL]], %[[E1]]
func.func @numbers(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f64>, %e: tensor<f32>) -> (tensor<f64>, tensor<f32>) attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %a0 = dist.all_reduce sum %a axes ["data"] reason "a" : tensor<f32>
  %a1 = nn.cast %a0 : tensor<f32> -> tensor<f64>
  %0 = nn.add %a1, %d : tensor<f64>
  %c0 = dist.all_reduce sum %c axes ["tensor"] reason "c" : tensor<f32>
  %c1 = nn.cast %c0 : tensor<f32> -> tensor<f64>
  %1 = nn.add %0, %c1 : tensor<f64>
  %b0 = dist.all_reduce sum %b axes ["data"] reason "b" : tensor<f32>
  %b1 = nn.cast %b0 : tensor<f32> -> tensor<f64>
  %2 = nn.add %1, %b1 : tensor<f64>
  %e0 = dist.all_reduce sum %e axes ["data"] reason "e" : tensor<f32>
  %e1 = nn.cast %e0 : tensor<f32> -> tensor<f64>
  %3 = nn.add %2, %e1 : tensor<f64>
  return %3, %e0 : tensor<f64>, tensor<f32>
}

// -----

// The addition to a sum over micro-batches keeps its form.
// CHECK-LABEL: func.func @accumulated
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<f32>, %[[B:[a-z0-9]*]]: tensor<f32>, %[[C:[a-z0-9]*]]: tensor<f32>)
// CHECK: %[[SUM:.*]] = nn.accumulator 0
// CHECK: %[[AB:.*]] = nn.add %[[A]], %[[B]]
// CHECK: %[[AB1:.*]] = dist.all_reduce sum %[[AB]]
// CHECK: %[[ALL:.*]] = nn.add %[[C]], %[[AB1]]
// CHECK: %[[ADD:.*]] = nn.add %[[SUM]], %[[ALL]]
// CHECK: nn.sum_micro_batches %[[ADD]] in %[[SUM]]
func.func @accumulated(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>) -> tensor<f32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %sum = nn.accumulator 0 : tensor<f32>
  %a0 = dist.all_reduce sum %a axes ["tensor"] reason "a" : tensor<f32>
  %0 = nn.add %a0, %c : tensor<f32>
  %b0 = dist.all_reduce sum %b axes ["tensor"] reason "b" : tensor<f32>
  %1 = nn.add %0, %b0 : tensor<f32>
  %2 = nn.add %sum, %1 : tensor<f32>
  %3 = nn.sum_micro_batches %2 in %sum : tensor<f32> : tensor<f32>
  return %3 : tensor<f32>
}

// -----

// What is rounded is added up before.
// CHECK-LABEL: func.func @rounded
// CHECK-COUNT-2: dist.all_reduce
func.func @rounded(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i64> attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>]} {
  %a0 = dist.all_reduce sum %a axes ["data"] reason "a" : tensor<f32>
  %a1 = nn.cast %a0 : tensor<f32> -> tensor<i64>
  %b0 = dist.all_reduce sum %b axes ["data"] reason "b" : tensor<f32>
  %b1 = nn.cast %b0 : tensor<f32> -> tensor<i64>
  %0 = nn.add %a1, %b1 : tensor<i64>
  return %0 : tensor<i64>
}

// -----

// CHECK-LABEL: func.func @reproducible
// CHECK-COUNT-2: dist.all_reduce
func.func @reproducible(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>], dist.reproducible} {
  %0 = dist.all_reduce sum %a axes ["tensor"] reason "a" : tensor<f32>
  %1 = dist.all_reduce sum %b axes ["tensor"] reason "b" : tensor<f32>
  %2 = nn.add %0, %1 : tensor<f32>
  return %2 : tensor<f32>
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

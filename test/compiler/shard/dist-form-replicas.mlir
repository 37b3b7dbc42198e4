// RUN: partita-opt --dist-form-replicas --split-input-file %s | FileCheck %s
// RUN: partita-opt --dist-form-replicas --split-input-file %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Samples are dealt out; what has none goes to all replicas.
// CHECK-LABEL: func.func @samples
// CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32> {nn.batch_axis = 0 : i64}, %[[S:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<4x9xf32> {nn.batch_axis = 1 : i64})
// CHECK-SAME: -> (tensor<6x4xf32> {nn.batch_axis = 0 : i64}, tensor<4xf32>)
// CHECK-NEXT: %[[R:.*]]:2 = dist.replicate 3(%[[X]], %[[S]], %[[T]]) dims [0, -1, 1] results [0, -1]
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2x4xf32>, %[[B:.*]]: tensor<4xf32>, %{{.*}}: tensor<4x3xf32>):
// CHECK-NEXT: %[[Y:.*]] = nn.relu %[[A]] : tensor<2x4xf32>
// CHECK-NEXT: dist.yield %[[Y]], %[[B]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @samples(%x: tensor<2x4xf32> {nn.batch_axis = 0 : i64}, %s: tensor<4xf32>, %t: tensor<4x3xf32> {nn.batch_axis = 1 : i64})
    -> (tensor<2x4xf32> {nn.batch_axis = 0 : i64}, tensor<4xf32>) attributes {dist.axes = [#dist.axis<"replica" = 3>, #dist.axis<"stage" = 0>]} {
  %0 = nn.relu %x : tensor<2x4xf32>
  return %0, %s : tensor<2x4xf32>, tensor<4xf32>
}

// -----

// There is nothing to do without replicas.
// CHECK-LABEL: func.func @one
// CHECK-NOT: dist.replicate
func.func @one(%x: tensor<2x4xf32> {nn.batch_axis = 0 : i64}) -> tensor<2x4xf32> attributes {dist.axes = [#dist.axis<"data" = 3>]} {
  %0 = nn.relu %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Placeholders belong into a replica, even if it is the only one.
// CHECK-LABEL: func.func @alone
// CHECK: dist.replicate 1
// CHECK: dist.replica.all_reduce
func.func @alone(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = dist.replica.all_reduce sum %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// REMARK: remark: no input has a batch dimension to deal out: all 2 replicas take the same inputs
func.func @same(%x: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  return %x : tensor<2x4xf32>
}

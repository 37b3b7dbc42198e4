// RUN: partita-opt %s --canonicalize --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Canonical forms carry the names of the nodes that they replace.

// CHECK-LABEL: func.func @reshape
// CHECK: nn.reshape {{.*}} loc("Reshape_2")
func.func @reshape(%x: tensor<2x6xf32>) -> tensor<4x3xf32> {
  %0 = nn.reshape %x : tensor<2x6xf32> -> tensor<12xf32> loc("Reshape_1")
  %1 = nn.reshape %0 : tensor<12xf32> -> tensor<4x3xf32> loc("Reshape_2")
  return %1 : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @pow
// CHECK: nn.mul {{.*}} loc("Pow_1")
func.func @pow(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = nn.constant dense<2.0> : tensor<2xf32>
  %0 = nn.pow %x, %c : tensor<2xf32> loc("Pow_1")
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @slice
// CHECK: nn.slice %{{.*}} [2, 3] to [9, 4] by [6, 1] : tensor<10x4xf32> -> tensor<2x1xf32> loc("Slice_2")
func.func @slice(%x: tensor<10x4xf32>) -> tensor<2x1xf32> {
  %0 = nn.slice %x [0, 1] to [10, 4] by [2, 1] : tensor<10x4xf32> -> tensor<5x3xf32> loc("Slice_1")
  %1 = nn.slice %0 [1, 2] to [5, 3] by [3, 1] : tensor<5x3xf32> -> tensor<2x1xf32> loc("Slice_2")
  return %1 : tensor<2x1xf32>
}

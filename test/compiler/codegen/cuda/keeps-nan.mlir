// RUN: partita-opt --fuse-clusters --form-clusters --lower-clusters %s | FileCheck %s

// What cuBLASLt's ReLU makes of NaN is not known: here a kernel computes it.
module attributes {plan.target = "cuda:sm_90", plan.keeps_nan} {
// CHECK-LABEL: @product
// CHECK: #plan.call<dot,
// CHECK-NOT: relu>
// CHECK: #plan.kernel<"k{{[0-9]+}}_relu"
func.func @product(%x: tensor<5x16xf32>, %w: tensor<16x8xf32>) -> tensor<5x8xf32> {
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<5x16xf32>, tensor<16x8xf32> -> tensor<5x8xf32>
  %1 = nn.relu %0 : tensor<5x8xf32>
  return %1 : tensor<5x8xf32>
}
}

// RUN: partita-opt --lower-clusters %s | FileCheck %s

// A transposed result is computed as the product of the transposed matrices,
// the other way round: the library writes rows. Where neither rows nor columns
// lie side by side there is a kernel.
// CHECK-LABEL: @transposed_result
func.func @transposed_result(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<3x4x16xf32>) -> (tensor<8x4xf32>, tensor<4x8x3xf32>) {
  // CHECK: #plan.call<dot, operands = [#plan.view<1 shape [8, 16] strides [1, 8]>, #plan.view<0 shape [16, 4] strides [1, 16]>, #plan.view<2 shape [8, 4] strides [4, 1]>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<8x4xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %t = nn.transpose %d [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    nn.yield %t : tensor<8x4xf32>
  }
  // CHECK: #plan.kernel
  %1 = nn.cluster kernel (%a0 = %b, %a1 = %w) : (tensor<3x4x16xf32>, tensor<16x8xf32>) -> tensor<4x8x3xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [2] x [0] : tensor<3x4x16xf32>, tensor<16x8xf32> -> tensor<3x4x8xf32>
    %t = nn.transpose %d [1, 2, 0] : tensor<3x4x8xf32> -> tensor<4x8x3xf32>
    nn.yield %t : tensor<4x8x3xf32>
  }
  return %0, %1 : tensor<8x4xf32>, tensor<4x8x3xf32>
}

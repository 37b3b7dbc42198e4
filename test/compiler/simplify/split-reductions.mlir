// RUN: partita-opt %s --nn-split-reductions | FileCheck %s

// Sixteen results would be one core's work.
// CHECK-LABEL: func.func @images
// CHECK: %[[R:.*]] = nn.reduce sum %{{.*}} [2] : tensor<1x800x800x16xf32> -> tensor<1x800x16xf32>
// CHECK: %[[S:.*]] = nn.reduce sum %[[R]] [1] : tensor<1x800x16xf32> -> tensor<1x16xf32>
// CHECK: return %[[S]]
func.func @images(%x: tensor<1x800x800x16xf32>) -> tensor<1x16xf32> {
  %0 = nn.reduce sum %x [1, 2] : tensor<1x800x800x16xf32> -> tensor<1x16xf32>
  return %0 : tensor<1x16xf32>
}

// No more outer dimensions than keep the cores busy.
// CHECK-LABEL: func.func @all
// CHECK: %[[R:.*]] = nn.reduce max %{{.*}} [2, 3] : tensor<2x40x64x64xf32> -> tensor<2x40xf32>
// CHECK: nn.reduce max %[[R]] [0, 1] : tensor<2x40xf32> -> tensor<f32>
func.func @all(%x: tensor<2x40x64x64xf32>) -> tensor<f32> {
  %0 = nn.reduce max %x [0, 1, 2, 3] : tensor<2x40x64x64xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// The innermost dimension stays in the first step, however few the others are.
// CHECK-LABEL: func.func @few
// CHECK: %[[R:.*]] = nn.reduce sum %{{.*}} [1] : tensor<4x50000xf32> -> tensor<4xf32>
// CHECK: nn.reduce sum %[[R]] [0] : tensor<4xf32> -> tensor<f32>
func.func @few(%x: tensor<4x50000xf32>) -> tensor<f32> {
  %0 = nn.reduce sum %x [0, 1] : tensor<4x50000xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// Enough rows, few elements, one dimension: one step.
// CHECK-LABEL: func.func @one_step
// CHECK-COUNT-3: nn.reduce
// CHECK-NOT: nn.reduce
func.func @one_step(%x: tensor<64x40x40xf32>, %y: tensor<1x7x7x64xf32>, %z: tensor<100000x3xf32>)
    -> (tensor<64xf32>, tensor<1x64xf32>, tensor<3xf32>) {
  %0 = nn.reduce sum %x [1, 2] : tensor<64x40x40xf32> -> tensor<64xf32>
  %1 = nn.reduce sum %y [1, 2] : tensor<1x7x7x64xf32> -> tensor<1x64xf32>
  %2 = nn.reduce sum %z [0] : tensor<100000x3xf32> -> tensor<3xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<1x64xf32>, tensor<3xf32>
}

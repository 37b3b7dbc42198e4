// RUN: partita-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @merge_reshapes
// CHECK-NEXT: nn.reshape %{{.*}} : tensor<2x6xf32> -> tensor<4x3xf32>
// CHECK-NEXT: return
func.func @merge_reshapes(%x: tensor<2x6xf32>) -> tensor<4x3xf32> {
  %0 = nn.reshape %x : tensor<2x6xf32> -> tensor<12xf32>
  %1 = nn.reshape %0 : tensor<12xf32> -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @merge_transposes
// CHECK-NEXT: nn.transpose %{{.*}} [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
// CHECK-NEXT: return
func.func @merge_transposes(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = nn.transpose %x [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
  %1 = nn.transpose %0 [1, 0, 2] : tensor<2x4x3xf32> -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @inverse_transposes
// CHECK-NEXT: return
func.func @inverse_transposes(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.transpose %x [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = nn.transpose %0 [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @transpose_of_unit_dims
// CHECK-NEXT: nn.reshape %{{.*}} : tensor<2x3x1x1xf32> -> tensor<2x1x1x3xf32>
func.func @transpose_of_unit_dims(%x: tensor<2x3x1x1xf32>) -> tensor<2x1x1x3xf32> {
  %0 = nn.transpose %x [0, 2, 3, 1] : tensor<2x3x1x1xf32> -> tensor<2x1x1x3xf32>
  return %0 : tensor<2x1x1x3xf32>
}

// CHECK-LABEL: func.func @merge_broadcasts
// CHECK-NEXT: nn.broadcast %{{.*}} [2] : tensor<3xf32> -> tensor<5x2x3xf32>
func.func @merge_broadcasts(%x: tensor<3xf32>) -> tensor<5x2x3xf32> {
  %0 = nn.broadcast %x [1] : tensor<3xf32> -> tensor<2x3xf32>
  %1 = nn.broadcast %0 [1, 2] : tensor<2x3xf32> -> tensor<5x2x3xf32>
  return %1 : tensor<5x2x3xf32>
}

// CHECK-LABEL: func.func @drop_unit_dims
// CHECK-NEXT: %[[V:.*]] = nn.reshape %{{.*}} : tensor<1x3x1xf32> -> tensor<3xf32>
// CHECK-NEXT: nn.broadcast %[[V]] [1] : tensor<3xf32> -> tensor<2x3x4xf32>
func.func @drop_unit_dims(%x: tensor<1x3x1xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.broadcast %x [0, 1, 2] : tensor<1x3x1xf32> -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @broadcast_to_reshape
// CHECK-NEXT: nn.reshape %{{.*}} : tensor<3xf32> -> tensor<1x3x1xf32>
func.func @broadcast_to_reshape(%x: tensor<3xf32>) -> tensor<1x3x1xf32> {
  %0 = nn.broadcast %x [1] : tensor<3xf32> -> tensor<1x3x1xf32>
  return %0 : tensor<1x3x1xf32>
}

// CHECK-LABEL: func.func @powers
func.func @powers(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %two = nn.constant dense<2.0> : tensor<2xf32>
  %three = nn.constant dense<3.0> : tensor<2xf32>
  %half = nn.constant dense<0.5> : tensor<2xf32>
  %minus_half = nn.constant dense<-0.5> : tensor<2xf32>
  // CHECK: nn.mul %[[X:.*]], %[[X]]
  %0 = nn.pow %x, %two : tensor<2xf32>
  // CHECK: %[[S:.*]] = nn.mul %[[X]], %[[X]]
  // CHECK: nn.mul %[[S]], %[[X]]
  %1 = nn.pow %x, %three : tensor<2xf32>
  // CHECK: nn.sqrt
  %2 = nn.pow %x, %half : tensor<2xf32>
  // CHECK: nn.rsqrt
  %3 = nn.pow %x, %minus_half : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// Only what is exact.
// CHECK-LABEL: func.func @divide
func.func @divide(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %eight = nn.constant dense<8.0> : tensor<2xf32>
  %three = nn.constant dense<3.0> : tensor<2xf32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<2xf32>
  %0 = nn.div %x, %eight : tensor<2xf32>
  // CHECK: nn.div %{{.*}}, %{{.*}} : tensor<2xf32>
  %1 = nn.div %x, %three : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

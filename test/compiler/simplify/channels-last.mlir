// RUN: partita-opt %s --nn-channels-last --canonicalize --cse | FileCheck %s

// One transpose at each edge of the network.
// CHECK-LABEL: func.func @residual
// CHECK: %[[X:.*]] = nn.transpose %{{.*}} [0, 2, 3, 1] : tensor<1x4x8x6xf32> -> tensor<1x8x6x4xf32>
// CHECK-NOT: nn.transpose
// CHECK: %[[C:.*]] = nn.conv %[[X]], %{{.*}} channels_last
// CHECK: %[[B:.*]] = nn.broadcast %{{.*}} [3] : tensor<4xf32> -> tensor<1x8x6x4xf32>
// CHECK: %[[S:.*]] = nn.add %[[C]], %[[B]]
// CHECK: %[[R:.*]] = nn.relu %[[S]]
// CHECK: %[[D:.*]] = nn.conv %[[R]], %{{.*}} channels_last
// CHECK: %[[A:.*]] = nn.add %[[D]], %[[R]]
// CHECK: %[[P:.*]] = nn.window_reduce max %[[A]] window [1, 2, 2, 1] strides [1, 2, 2, 1]
// CHECK: %[[T:.*]] = nn.transpose %[[P]] [0, 3, 1, 2]
// CHECK: return %[[T]]
func.func @residual(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x4x3xf32> {
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x6xf32>
  %1 = nn.broadcast %b [1] : tensor<4xf32> -> tensor<1x4x8x6xf32>
  %2 = nn.add %0, %1 : tensor<1x4x8x6xf32>
  %3 = nn.relu %2 : tensor<1x4x8x6xf32>
  %4 = nn.conv %3, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x6xf32>
  %5 = nn.add %4, %3 : tensor<1x4x8x6xf32>
  %6 = nn.window_reduce max %5 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
    : tensor<1x4x8x6xf32> -> tensor<1x4x4x3xf32>
  return %6 : tensor<1x4x4x3xf32>
}

// Ops whose dimension attributes are renamed.
// CHECK-LABEL: func.func @shape_ops
// CHECK: %[[C:.*]] = nn.conv
// CHECK: nn.pad %[[C]], %{{.*}} low [0, 0, 1, 0] high [0, 1, 0, 0]
// CHECK: nn.slice %{{.*}} [0, 1, 0, 0] to [1, 9, 7, 4] by [1, 2, 1, 1]
// CHECK: nn.concat %{{.*}}, %{{.*}} dim 3
// CHECK: nn.gather %{{.*}}, %{{.*}} dim 1 : tensor<1x4x7x8xf32>, tensor<12xi64> -> tensor<1x12x7x8xf32>
// CHECK: nn.reverse %{{.*}} [2]
// CHECK: nn.softmax %{{.*}} dim 3
// CHECK: nn.transpose %{{.*}} [0, 3, 1, 2]
func.func @shape_ops(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x3x3xf32>, %zero: tensor<f32>, %i: tensor<12xi64>) -> tensor<1x8x12x7xf32> {
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x6xf32>
  %1 = nn.pad %0, %zero low [0, 0, 0, 1] high [0, 0, 1, 0] : tensor<1x4x8x6xf32>, tensor<f32> -> tensor<1x4x9x7xf32>
  %2 = nn.slice %1 [0, 0, 1, 0] to [1, 4, 9, 7] by [1, 1, 2, 1] : tensor<1x4x9x7xf32> -> tensor<1x4x4x7xf32>
  %3 = nn.concat %2, %2 dim 1 : (tensor<1x4x4x7xf32>, tensor<1x4x4x7xf32>) -> tensor<1x8x4x7xf32>
  %4 = nn.gather %3, %i dim 2 : tensor<1x8x4x7xf32>, tensor<12xi64> -> tensor<1x8x12x7xf32>
  %5 = nn.reverse %4 [3] : tensor<1x8x12x7xf32>
  %6 = nn.softmax %5 dim 1 : tensor<1x8x12x7xf32>
  return %6 : tensor<1x8x12x7xf32>
}

// A global pooling needs no transpose, nor does what it gates.
// CHECK-LABEL: func.func @gate
// CHECK: %[[C:.*]] = nn.conv
// CHECK: %[[G:.*]] = nn.reduce sum %[[C]] [1, 2] : tensor<2x8x6x4xf32> -> tensor<2x4xf32>
// CHECK: %[[B:.*]] = nn.broadcast %[[G]] [0, 3] : tensor<2x4xf32> -> tensor<2x8x6x4xf32>
// CHECK: %[[M:.*]] = nn.mul %[[C]], %[[B]]
// CHECK: nn.transpose %[[M]] [0, 3, 1, 2]
func.func @gate(%x: tensor<2x4x8x6xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<2x4x8x6xf32> {
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<2x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<2x4x8x6xf32>
  %1 = nn.reduce sum %0 [2, 3] : tensor<2x4x8x6xf32> -> tensor<2x4xf32>
  %2 = nn.broadcast %1 [0, 1] : tensor<2x4xf32> -> tensor<2x4x8x6xf32>
  %3 = nn.mul %0, %2 : tensor<2x4x8x6xf32>
  return %3 : tensor<2x4x8x6xf32>
}

// What is repeated along dimensions that change their order is transposed while
// it is small.
// CHECK-LABEL: func.func @small_transpose
// CHECK: %[[S:.*]] = nn.transpose %{{.*}} [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK: nn.broadcast %[[S]] [1, 3] : tensor<8x4xf32> -> tensor<1x8x6x4xf32>
func.func @small_transpose(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x3x3xf32>, %b: tensor<4x8xf32>) -> tensor<1x4x8x6xf32> {
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x6xf32>
  %1 = nn.broadcast %b [1, 2] : tensor<4x8xf32> -> tensor<1x4x8x6xf32>
  %2 = nn.mul %0, %1 : tensor<1x4x8x6xf32>
  return %2 : tensor<1x4x8x6xf32>
}

// A second activation in the old order, as large: moving on would cost more.
// CHECK-LABEL: func.func @stays
// CHECK: %[[C:.*]] = nn.conv
// CHECK: %[[T:.*]] = nn.transpose %[[C]] [0, 3, 1, 2]
// CHECK: nn.add %[[T]], %{{.*}} : tensor<1x4x8x6xf32>
func.func @stays(%x: tensor<1x4x8x6xf32>, %w: tensor<4x4x3x3xf32>, %y: tensor<1x4x8x6xf32>) -> tensor<1x4x8x6xf32> {
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x6xf32>
  %1 = nn.add %0, %y : tensor<1x4x8x6xf32>
  return %1 : tensor<1x4x8x6xf32>
}

// The largest elements of windows and what is added to them, in the same order. A window whose dimensions change places would number its elements otherwise.
// CHECK-LABEL: func.func @pool_gradient
// CHECK: %[[X:.*]] = nn.transpose %{{.*}} [0, 2, 3, 1]
// CHECK: %[[I:.*]] = nn.window_arg_max %[[X]] window [1, 3, 2, 1] strides [1, 2, 2, 1] dilations [1, 1, 1, 1] pads [0, 1, 0, 0] x [0, 0, 0, 0] : tensor<2x7x8x16xf32> -> tensor<2x3x4x16xi32>
// CHECK: %[[D:.*]] = nn.transpose %{{.*}} [0, 2, 3, 1]
// CHECK: %[[S:.*]] = nn.window_spread %[[D]] at %[[I]] window [1, 3, 2, 1]
// CHECK: nn.transpose %[[S]] [0, 3, 1, 2]
// CHECK-LABEL: func.func @turned
// CHECK: nn.window_arg_max %{{.*}} window [1, 1, 3, 2] {{.*}} : tensor<2x4x7x8xf32>
func.func @pool_gradient(%x: tensor<2x16x7x8xf32>, %dy: tensor<2x16x3x4xf32>) -> tensor<2x16x7x8xf32> {
  %0 = nn.window_arg_max %x window [1, 1, 3, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 1, 0] x [0, 0, 0, 0] : tensor<2x16x7x8xf32> -> tensor<2x16x3x4xi32>
  %1 = nn.window_spread %dy at %0 window [1, 1, 3, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 1, 0] x [0, 0, 0, 0] : tensor<2x16x3x4xf32>, tensor<2x16x3x4xi32> -> tensor<2x16x7x8xf32>
  return %1 : tensor<2x16x7x8xf32>
}
func.func @turned(%x: tensor<2x4x8x7xf32>) -> tensor<2x4x4x3xi32> {
  %0 = nn.transpose %x [0, 1, 3, 2] : tensor<2x4x8x7xf32> -> tensor<2x4x7x8xf32>
  %1 = nn.window_arg_max %0 window [1, 1, 3, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 1, 0] x [0, 0, 0, 0] : tensor<2x4x7x8xf32> -> tensor<2x4x3x4xi32>
  %2 = nn.transpose %1 [0, 1, 3, 2] : tensor<2x4x3x4xi32> -> tensor<2x4x4x3xi32>
  return %2 : tensor<2x4x4x3xi32>
}

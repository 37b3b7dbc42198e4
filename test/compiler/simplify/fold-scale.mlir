// RUN: partita-opt %s --nn-fold-scale | FileCheck %s

nn.weight @w "w" : tensor<4x3x3x3xf32> = dense<1.0> : tensor<4x3x3x3xf32>
nn.weight @m "m" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
nn.weight @v "v" : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// CHECK-LABEL: func.func @conv
// CHECK: %[[W:.*]] = nn.parameter @w
// CHECK: %[[V:.*]] = nn.parameter @v
// CHECK: %[[S:.*]] = nn.broadcast %[[V]] [0] : tensor<4xf32> -> tensor<4x3x3x3xf32>
// CHECK: %[[SW:.*]] = nn.mul %[[W]], %[[S]]
// CHECK: %[[R:.*]] = nn.conv %{{.*}}, %[[SW]]
// CHECK: return %[[R]]
func.func @conv(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %w = nn.parameter @w : tensor<4x3x3x3xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %s = nn.broadcast %v [1] : tensor<4xf32> -> tensor<1x4x6x6xf32>
  %1 = nn.mul %0, %s : tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}

// A bias, then batch normalization: (x + b) * s + b.
// CHECK-LABEL: func.func @batch_norm
// CHECK: %[[SW:.*]] = nn.mul %{{.*}}, %{{.*}} : tensor<4x3x3x3xf32>
// CHECK: %[[C:.*]] = nn.conv %{{.*}}, %[[SW]]
// CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<4xf32>
// CHECK: %[[B:.*]] = nn.add %{{.*}}, %{{.*}} : tensor<1x4x6x6xf32>
// CHECK: %[[R:.*]] = nn.add %[[C]], %[[B]]
// CHECK: return %[[R]]
func.func @batch_norm(%x: tensor<1x3x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %w = nn.parameter @w : tensor<4x3x3x3xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %s = nn.broadcast %v [1] : tensor<4xf32> -> tensor<1x4x6x6xf32>
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %1 = nn.add %0, %s : tensor<1x4x6x6xf32>
  %2 = nn.mul %1, %s : tensor<1x4x6x6xf32>
  %3 = nn.add %2, %s : tensor<1x4x6x6xf32>
  return %3 : tensor<1x4x6x6xf32>
}

// CHECK-LABEL: func.func @dot
// CHECK: %[[S:.*]] = nn.broadcast %{{.*}} [1] : tensor<4xf32> -> tensor<8x4xf32>
// CHECK: %[[SW:.*]] = nn.mul %{{.*}}, %[[S]] : tensor<8x4xf32>
// CHECK: nn.dot %{{.*}}, %[[SW]]
// CHECK-NEXT: return
func.func @dot(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %w = nn.parameter @m : tensor<8x4xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %s = nn.broadcast %v [1] : tensor<4xf32> -> tensor<2x4xf32>
  %1 = nn.mul %s, %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// The unscaled result is used too.
// CHECK-LABEL: func.func @two_uses
// CHECK: %[[C:.*]] = nn.dot
// CHECK: nn.mul %[[C]]
func.func @two_uses(%x: tensor<2x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = nn.parameter @m : tensor<8x4xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %s = nn.broadcast %v [1] : tensor<4xf32> -> tensor<2x4xf32>
  %1 = nn.mul %0, %s : tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// A factor for each row is none for each output channel.
// CHECK-LABEL: func.func @other_dim
// CHECK: %[[C:.*]] = nn.dot
// CHECK: nn.mul %[[C]]
func.func @other_dim(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %w = nn.parameter @m : tensor<8x4xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  %s = nn.broadcast %v [0] : tensor<4xf32> -> tensor<4x4xf32>
  %1 = nn.mul %0, %s : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

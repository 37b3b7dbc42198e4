// RUN: partita-opt %s --nn-simplify | FileCheck %s

// Weights that nothing uses go.
// CHECK-NOT: @unused
// CHECK: nn.weight @used
nn.weight @unused "unused" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
nn.weight @used "used" : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.parameter @unused : tensor<4xf32>
  %w = nn.parameter @used : tensor<4xf32>
  %0 = nn.add %x, %w : tensor<4xf32>
  return %0 : tensor<4xf32>
}

nn.weight @k "k" : tensor<4x4x3x3xf32> = dense<1.0> : tensor<4x4x3x3xf32>

// Scales go into weights before layouts change: the scale, repeated to the shape
// of the result, is a vector first (one multiplication of the weights, none of
// an image). Layouts change last: two images, one transpose before and one
// behind both convolutions.
// CHECK-LABEL: func.func @order
// CHECK: nn.mul {{.*}} : tensor<4x4x3x3xf32>
// CHECK-COUNT-1: nn.transpose
// CHECK: nn.conv {{.*}} channels_last
// CHECK-NOT: nn.transpose
// CHECK-NOT: nn.mul {{.*}}tensor<1x
// CHECK: nn.relu
// CHECK: nn.conv {{.*}} channels_last
// CHECK: nn.transpose
// CHECK-NOT: nn.transpose
// CHECK: return
func.func @order(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %k = nn.parameter @k : tensor<4x4x3x3xf32>
  %s = nn.parameter @used : tensor<4xf32>
  %0 = nn.conv %x, %k channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.broadcast %s [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  %2 = nn.exp %1 : tensor<1x4x8x8xf32>
  %3 = nn.mul %0, %2 : tensor<1x4x8x8xf32>
  %4 = nn.relu %3 : tensor<1x4x8x8xf32>
  %5 = nn.conv %4, %k channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x8x8xf32>
  return %5 : tensor<1x4x8x8xf32>
}

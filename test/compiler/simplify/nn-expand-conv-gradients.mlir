// RUN: partita-opt --nn-expand-conv-gradients --nn-channels-last --canonicalize --cse %s | FileCheck %s
// RUN: partita-opt --nn-expand-conv-gradients --canonicalize --cse %s | FileCheck %s --check-prefix=GPU
// RUN: partita-opt --nn-expand-conv-gradients=library-calls=false %s | FileCheck %s --check-prefix=LOOPS

// oneDNN has code for both, whose images have the channels innermost.
// CHECK-LABEL: @both
// CHECK: nn.conv_dx %{{.*}}, %{{.*}} channels_last {{.*}} tensor<2x8x8x6xf32>, tensor<6x4x3x3xf32> -> tensor<2x8x8x4xf32>
// CHECK: nn.conv_dw %{{.*}}, %{{.*}} channels_last {{.*}} tensor<2x8x8x4xf32>, tensor<2x8x8x6xf32> -> tensor<6x4x3x3xf32>
func.func @both(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %dy: tensor<2x6x8x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) {
  %0 = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<2x6x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  %1 = nn.conv_dw %x, %dy channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<2x4x8x8xf32>, tensor<2x6x8x8xf32> -> tensor<6x4x3x3xf32>
  return %0, %1 : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>
}

// It has none of these: dilated windows, and windows of 5 x 5 for each channel.
// CHECK-LABEL: @neither
// CHECK-NOT: nn.conv_d
// CHECK: return
// LOOPS-LABEL: @neither
// LOOPS: nn.conv_dx
// LOOPS: nn.conv_dw
func.func @neither(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %dy: tensor<2x6x8x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<4x1x5x5xf32>) {
  %0 = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [2, 2] pads [2, 2] x [2, 2] groups 1
    : tensor<2x6x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  %1 = nn.conv_dw %x, %0 channels_first strides [1, 1] dilations [1, 1] pads [2, 2] x [2, 2] groups 4
    : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<4x1x5x5xf32>
  return %0, %1 : tensor<2x4x8x8xf32>, tensor<4x1x5x5xf32>
}

// On GPUs both are convolutions: the derivative to the image under the reversed
// window, that to the weights with the batch in the place of the channels.
// GPU-LABEL: @gpu
// GPU: %[[W:.*]] = nn.reverse %{{.*}} [2, 3]
// GPU: nn.conv %{{.*}}, %[[W]] {{.*}} -> tensor<2x4x8x8xf32>
// GPU: nn.conv %{{.*}} pads [1, 1] x [1, 1] groups 1 : tensor<4x2x8x8xf32>, tensor<6x2x8x8xf32> -> tensor<4x6x3x3xf32>
func.func @gpu(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %dy: tensor<2x6x8x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) attributes {dist.targets = ["cuda:sm_90"]} {
  %0 = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<2x6x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<2x4x8x8xf32>
  %1 = nn.conv_dw %x, %dy channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<2x4x8x8xf32>, tensor<2x6x8x8xf32> -> tensor<6x4x3x3xf32>
  return %0, %1 : tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @conv_dx_c1(%dy: tensor<1x6x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{result has shape [1, 6, 8, 8] instead of [1, 6, 4, 8]}}
  %0 = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x6x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<1x4x4x8xf32>
  return
}

// -----

func.func @conv_dw_c1(%x: tensor<1x4x8x8xf32>, %dy: tensor<1x6x8x8xf32>) {
  // expected-error@+1 {{cannot divide 4 input and 6 output channels into 2 groups with weights of 4 input channels}}
  %0 = nn.conv_dw %x, %dy channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 2 : tensor<1x4x8x8xf32>, tensor<1x6x8x8xf32> -> tensor<6x4x3x3xf32>
  return
}

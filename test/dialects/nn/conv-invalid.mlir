// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @conv_c1(%x: tensor<1x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error@+1 {{needs operands and a result of one rank of at least 3 and one element type}}
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x4xf32>, tensor<6x4xf32> -> tensor<1x6xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{needs one stride, dilation and pair of pads for each of the 2 spatial dimensions}}
  %0 = nn.conv %x, %w channels_first strides [1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x8x8xf32>
  return
}

// -----

func.func @conv_c2_zero(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{needs strides and dilations of at least 1}}
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 0] pads [1, 1] x [1, 1] groups 1 : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x8x8xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{cannot divide 4 input and 6 output channels into 2 groups with weights of 4 input channels}}
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 2 : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x8x8xf32>
  return
}

// -----

func.func @conv_c4(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{result has shape [1, 6, 8, 8] instead of [1, 6, 4, 8]}}
  %0 = nn.conv %x, %w channels_first strides [2, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x8x8xf32>
  return
}

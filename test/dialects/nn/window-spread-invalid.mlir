// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @window_spread_c1(%dy: tensor<2x2xf32>, %i: tensor<2x2xi32>) {
  // expected-error@+1 {{needs a window, stride, dilation and pair of pads for each of the 2 dimensions}}
  %0 = nn.window_spread %dy at %i window [2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x2xf32>, tensor<2x2xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @window_spread_c2(%dy: tensor<2x3xf32>, %i: tensor<2x3xi32>) {
  // expected-error@+1 {{dy is 'tensor<2x3xf32>' instead of 'tensor<2x2xf32>'}}
  %0 = nn.window_spread %dy at %i window [1, 2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x3xf32>, tensor<2x3xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @window_spread_c3(%dy: tensor<2x2xf32>, %i: tensor<2x1xi32>) {
  // expected-error@+1 {{needs a number for each element of dy, and not 'tensor<2x1xi32>' for 'tensor<2x2xf32>'}}
  %0 = nn.window_spread %dy at %i window [1, 2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x2xf32>, tensor<2x1xi32> -> tensor<2x3xf32>
  return
}

// -----

func.func @window_spread_c4(%dy: tensor<1x1xf32>, %i: tensor<1x1xi32>) {
  // expected-error@+1 {{has windows of 2^31 or more elements}}
  %0 = nn.window_spread %dy at %i window [65536, 65536] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<1x1xf32>, tensor<1x1xi32> -> tensor<65536x65536xf32>
  return
}

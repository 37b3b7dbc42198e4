// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @window_reduce_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs a window, stride, dilation and pair of pads for each of the 2 dimensions}}
  %0 = nn.window_reduce max %x window [2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @window_reduce_c1_negative(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs windows, strides and dilations of at least 1 and no negative pads, unlike dimension 1}}
  %0 = nn.window_reduce max %x window [1, 2] strides [1, 1] dilations [1, 1] pads [0, -1] x [0, 0] : tensor<2x3xf32> -> tensor<2x1xf32>
  return
}

// -----

func.func @window_reduce_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result is 'tensor<2x3xf32>' instead of 'tensor<2x2xf32>'}}
  %0 = nn.window_reduce max %x window [1, 2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @window_arg_max_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs a window, stride, dilation and pair of pads for each of the 2 dimensions}}
  %0 = nn.window_arg_max %x window [2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x3xf32> -> tensor<2x2xi32>
  return
}

// -----

func.func @window_arg_max_c1_negative(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs windows, strides and dilations of at least 1 and no negative pads, unlike dimension 1}}
  %0 = nn.window_arg_max %x window [1, 2] strides [1, 1] dilations [1, 1] pads [0, -1] x [0, 0] : tensor<2x3xf32> -> tensor<2x1xi32>
  return
}

// -----

func.func @window_arg_max_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result is 'tensor<2x3xi32>' instead of 'tensor<2x2xi32>'}}
  %0 = nn.window_arg_max %x window [1, 2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x3xf32> -> tensor<2x3xi32>
  return
}

// -----

func.func @window_arg_max_c3(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{has a window without elements along dimension 1}}
  %0 = nn.window_arg_max %x window [1, 2] strides [1, 1] dilations [1, 1] pads [0, 2] x [0, 0] : tensor<2x3xf32> -> tensor<2x4xi32>
  return
}

// -----

func.func @window_arg_max_c4(%x: tensor<65536x65536xf32>) {
  // expected-error@+1 {{has windows of 2^31 or more elements}}
  %0 = nn.window_arg_max %x window [65536, 65536] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<65536x65536xf32> -> tensor<1x1xi32>
  return
}

// -----

func.func @window_arg_max_c5(%x: tensor<2x3xf32>, %m: tensor<2x3xf32>) {
  // expected-error@+1 {{max is 'tensor<2x3xf32>' instead of 'tensor<2x2xf32>'}}
  %0 = nn.window_arg_max %x max %m window [1, 2] strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xi32>
  return
}

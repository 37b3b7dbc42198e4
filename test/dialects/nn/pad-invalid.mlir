// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @pad_c1(%x: tensor<2x3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{needs one entry of 'high' for each of the 2 dimensions, but has 1}}
  %0 = nn.pad %x, %v low [0, 0] high [0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_c1_negative(%x: tensor<2x3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{cannot have a border of negative width}}
  %0 = nn.pad %x, %v low [0, -1] high [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x2xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<2x3xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{result has shape [2, 3] instead of [2, 4]}}
  %0 = nn.pad %x, %v low [0, 1] high [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_c3(%x: tensor<2x3xf32>, %v: tensor<1xf32>) {
  // expected-error@+1 {{needs a scalar of type 'f32' for the border, not 'tensor<1xf32>'}}
  %0 = nn.pad %x, %v low [0, 1] high [0, 0] : tensor<2x3xf32>, tensor<1xf32> -> tensor<2x4xf32>
  return
}

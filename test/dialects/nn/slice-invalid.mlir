// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @slice_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs one entry of 'limits' for each of the 2 dimensions, but has 1}}
  %0 = nn.slice %x [0, 0] to [2] by [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot take elements 0 to 4 by 1 of dimension 1 of size 3}}
  %0 = nn.slice %x [0, 0] to [2, 4] by [1, 1] : tensor<2x3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @slice_c2_stride(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot take elements 0 to 3 by 0 of dimension 1 of size 3}}
  %0 = nn.slice %x [0, 0] to [2, 3] by [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_c3(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result has shape [2, 3] instead of [2, 2]}}
  %0 = nn.slice %x [0, 0] to [2, 3] by [1, 2] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @broadcast_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs one entry of 'dims' for each of the 2 dimensions, but has 1}}
  %0 = nn.broadcast %x [0] : tensor<2x3xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @broadcast_c1_order(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs increasing dimensions, not [1, 0]}}
  %0 = nn.broadcast %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @broadcast_c1_range(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{names dimension 3 of a tensor with 3 dimensions}}
  %0 = nn.broadcast %x [0, 3] : tensor<2x3xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @broadcast_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot repeat dimension 1 of size 3 to size 4}}
  %0 = nn.broadcast %x [0, 1] : tensor<2x3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @broadcast_c3(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{turns elements of type 'f32' into elements of type 'i8'}}
  %0 = nn.broadcast %x [0, 1] : tensor<2x3xf32> -> tensor<2x3xi8>
  return
}

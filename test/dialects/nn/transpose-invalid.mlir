// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{[0, 0] is not a permutation of 2 dimensions}}
  %0 = nn.transpose %x [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @transpose_c1_length(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{[0] is not a permutation of 2 dimensions}}
  %0 = nn.transpose %x [0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @transpose_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result has shape [2, 3] instead of [3, 2]}}
  %0 = nn.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @transpose_c2_type(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{turns elements of type 'f32' into elements of type 'f16'}}
  %0 = nn.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf16>
  return
}

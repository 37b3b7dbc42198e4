// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @reverse_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{names dimension 1 twice}}
  %0 = nn.reverse %x [1, 1] : tensor<2x3xf32>
  return
}

// -----

func.func @reverse_c1_range(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{names dimension 2 of a tensor with 2 dimensions}}
  %0 = nn.reverse %x [2] : tensor<2x3xf32>
  return
}

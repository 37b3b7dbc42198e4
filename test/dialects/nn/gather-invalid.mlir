// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @gather_c1(%x: tensor<2x3xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{names dimension 2 of a tensor with 2 dimensions}}
  %0 = nn.gather %x, %i dim 2 : tensor<2x3xf32>, tensor<5xi64> -> tensor<2x5xf32>
  return
}

// -----

func.func @gather_c1_empty(%x: tensor<0x3xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{chooses from dimension 0, which is empty}}
  %0 = nn.gather %x, %i dim 0 : tensor<0x3xf32>, tensor<5xi64> -> tensor<5x3xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<2x3xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{result has shape [2, 5] instead of [5, 3]}}
  %0 = nn.gather %x, %i dim 0 : tensor<2x3xf32>, tensor<5xi64> -> tensor<2x5xf32>
  return
}

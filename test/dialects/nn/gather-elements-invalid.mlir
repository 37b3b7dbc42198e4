// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @gather_elements_c1(%x: tensor<2x3xf32>, %i: tensor<2x5xi64>) {
  // expected-error@+1 {{names dimension 2 of a tensor with 2 dimensions}}
  %0 = nn.gather_elements %x, %i dim 2 : tensor<2x3xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
  return
}

// -----

func.func @gather_elements_c1_empty(%x: tensor<2x0xf32>, %i: tensor<2x5xi64>) {
  // expected-error@+1 {{chooses from dimension 1, which is empty}}
  %0 = nn.gather_elements %x, %i dim 1 : tensor<2x0xf32>, tensor<2x5xi64> -> tensor<2x5xf32>
  return
}

// -----

func.func @gather_elements_c2(%x: tensor<2x3xf32>, %i: tensor<3x5xi64>) {
  // expected-error@+1 {{cannot choose from 'tensor<2x3xf32>' along dimension 1 with indices 'tensor<3x5xi64>'}}
  %0 = nn.gather_elements %x, %i dim 1 : tensor<2x3xf32>, tensor<3x5xi64> -> tensor<3x5xf32>
  return
}

// -----

func.func @gather_elements_c3(%x: tensor<2x3xf32>, %i: tensor<2x5xi64>) {
  // expected-error@+1 {{result has shape [2, 3] instead of [2, 5]}}
  %0 = nn.gather_elements %x, %i dim 1 : tensor<2x3xf32>, tensor<2x5xi64> -> tensor<2x3xf32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @concat_c1() {
  // expected-error@+1 {{needs at least one operand}}
  %0 = nn.concat dim 0 : () -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_c1_dim(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{names dimension 2 of a tensor with 2 dimensions}}
  %0 = nn.concat %x dim 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{cannot make 'tensor<4x4xf32>' of 'tensor<2x3xf32>' along dimension 0}}
  %0 = nn.concat %x, %x dim 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @concat_c3(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{has operands of 4 elements along dimension 0, but a result of 5}}
  %0 = nn.concat %x, %x dim 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<5x3xf32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @reduce_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{needs increasing dimensions of a tensor with 2 dimensions, not [1, 0]}}
  %0 = nn.reduce sum %x [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @reduce_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result is 'tensor<3xf32>' instead of 'tensor<2xf32>'}}
  %0 = nn.reduce sum %x [1] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @dot_c1(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{needs as many batch and contracted dimensions of lhs as of rhs}}
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_c2(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  // expected-error@+1 {{names dimension 1 of rhs twice}}
  %0 = nn.dot %x, %y batch [0] x [1] contract [1] x [1] : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @dot_c2_range(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{names dimension 2 of lhs, which has 2 dimensions}}
  %0 = nn.dot %x, %y batch [] x [] contract [2] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_c3(%x: tensor<2x3xf32>, %y: tensor<4x4xf32>) {
  // expected-error@+1 {{has batch or contracted dimensions of different sizes in 'tensor<2x3xf32>' and 'tensor<4x4xf32>'}}
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @dot_c4(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{result has shape [4, 2] instead of [2, 4]}}
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @dot_c5(%x: tensor<2x3xf32>, %y: tensor<3x4xf16>) {
  // expected-error@+1 {{needs one element type, or integers of 8 bits and their sums, not 'f32', 'f16' and 'f32'}}
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<3x4xf16> -> tensor<2x4xf32>
  return
}

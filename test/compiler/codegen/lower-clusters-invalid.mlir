// RUN: partita-opt --lower-clusters -verify-diagnostics %s

// What fusion decided holds: where the library does not compute it, nothing
// else is taken in silence.
func.func @main(%b: tensor<3x4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8x3xf32> {
  // expected-error@+1 {{'nn.cluster' is to be a library call, but the library does not compute it}}
  %1 = nn.cluster call (%a0 = %b, %a1 = %w) : (tensor<3x4x16xf32>, tensor<16x8xf32>) -> tensor<4x8x3xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [2] x [0] : tensor<3x4x16xf32>, tensor<16x8xf32> -> tensor<3x4x8xf32>
    %t = nn.transpose %d [1, 2, 0] : tensor<3x4x8xf32> -> tensor<4x8x3xf32>
    nn.yield %t : tensor<4x8x3xf32>
  }
  return %1 : tensor<4x8x3xf32>
}

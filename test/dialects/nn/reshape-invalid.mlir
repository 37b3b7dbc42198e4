// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @reshape_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{turns 6 elements into 8}}
  %0 = nn.reshape %x : tensor<2x3xf32> -> tensor<8xf32>
  return
}

// -----

func.func @reshape_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{turns elements of type 'f32' into elements of type 'i32'}}
  %0 = nn.reshape %x : tensor<2x3xf32> -> tensor<6xi32>
  return
}

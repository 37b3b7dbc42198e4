// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @bitcast_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{needs element types of one width, not 'f32' and 'i64'}}
  %0 = nn.bitcast %x : tensor<8xf32> -> tensor<8xi64>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @iota_c1() {
  // expected-error@+1 {{names dimension 1 of a tensor with 1 dimensions}}
  %0 = nn.iota 1 : tensor<8xi64>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{names dimension 2 of a tensor with 2 dimensions}}
  %0 = nn.softmax %x dim 2 : tensor<2x3xf32>
  return
}

// RUN: partita-opt %s --nn-simplify | FileCheck %s

// Weights that nothing uses go.
// CHECK-NOT: @unused
// CHECK: nn.weight @used
nn.weight @unused "unused" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
nn.weight @used "used" : tensor<4xf32> = dense<1.0> : tensor<4xf32>

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.parameter @unused : tensor<4xf32>
  %w = nn.parameter @used : tensor<4xf32>
  %0 = nn.add %x, %w : tensor<4xf32>
  return %0 : tensor<4xf32>
}

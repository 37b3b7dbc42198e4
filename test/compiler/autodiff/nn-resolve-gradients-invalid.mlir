// RUN: partita-opt --nn-resolve-gradients --split-input-file --verify-diagnostics %s

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = nn.variable %x number 0 : tensor<4xf32>
  // expected-error @+1 {{nn.scan has no derivative, and a gradient of the model needs it}}
  %y = nn.scan prod %v dim 0 : tensor<4xf32>
  %g = nn.gradient %y to %v : tensor<4xf32>, (tensor<4xf32>) -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// RUN: partita-opt --nn-differentiate --split-input-file --verify-diagnostics %s

nn.weight @w "fc.weight" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
func.func @main(%x: tensor<4xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<4xf32>
  %0 = nn.mul %x, %w : tensor<4xf32>
  // expected-error @+1 {{nn.scan has no derivative, and the loss depends on 'fc.weight' through it}}
  %1 = nn.scan prod %0 dim 0 : tensor<4xf32>
  %2 = nn.reduce sum %1 [0] : tensor<4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// expected-error @unknown {{the loss depends on no parameter that is trained}}
func.func @main(%x: tensor<4xf32>) -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.reduce sum %x [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{a loss is one number, of floats}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

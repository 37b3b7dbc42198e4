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

// -----

func.func @main(%x: tensor<2xf32>) -> (tensor<1xf32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  // expected-error @+1 {{each replica has another loss: join them before}}
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<2xf32> -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
func.func @main(%x: tensor<4xf32>) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w : tensor<4xf32>
  // expected-error @+1 {{joins devices along ["tensor"]: only what joins replicas has a derivative (axis "replica")}}
  %0 = dist.all_reduce sum %w axes ["tensor"] reason "" : tensor<4xf32>
  %1 = nn.reduce sum %0 [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
func.func @main(%x: tensor<4xf32>) -> (tensor<f32> {nn.name = "loss"}) attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %w = nn.parameter @w : tensor<4xf32>
  // expected-error @+1 {{dist.reduce_scatter has no derivative, and the loss depends on 'w' through it}}
  %0 = dist.reduce_scatter max %w dim 0 blocks 1 axes ["replica"] reason "" : tensor<4xf32> -> tensor<2xf32>
  %1 = dist.all_gather %0 dim 0 blocks 1 axes ["replica"] reason "" : tensor<2xf32> -> tensor<4xf32>
  %2 = nn.reduce sum %1 [0] : tensor<4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

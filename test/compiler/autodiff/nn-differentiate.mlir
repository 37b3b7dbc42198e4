// RUN: partita-opt --nn-differentiate --cse --split-input-file %s | FileCheck %s
// RUN: partita-opt --nn-differentiate=inputs=true --cse --split-input-file %s | FileCheck %s --check-prefix=INPUTS

// The derivative of tanh comes from its result. A weight with two uses has one
// gradient, and one that the loss does not depend on has none.
// CHECK: nn.weight @w "w" {{.*}}nn.trained
// CHECK: nn.weight @far "far" {{.*}}nn.untrained = "the loss does not depend on it"
// CHECK: -> (tensor<f32> {nn.name = "loss", nn.port = 0 : i64}, tensor<4xf32> {nn.name = "w.grad", nn.port = 1 : i64})
// CHECK: %[[Y:.*]] = nn.tanh
// CHECK: %[[S:.*]] = nn.mul %[[Y]], %[[Y]]
// CHECK: nn.sub %{{.*}}, %[[S]]
// CHECK: %[[SUM:.*]] = nn.add %{{.*}}, %[[Y]]
// CHECK: return %{{.*}}, %[[SUM]]
// INPUTS: "x.grad"
nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
nn.weight @far "far" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<4xf32>
  %v = nn.parameter @w : tensor<4xf32>
  %far = nn.parameter @far : tensor<4xf32>
  %0 = nn.mul %x, %w : tensor<4xf32>
  %1 = nn.tanh %0 : tensor<4xf32>
  %2 = nn.mul %1, %v : tensor<4xf32>
  %3 = nn.reduce sum %2 [0] : tensor<4xf32> -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// The products of one node's steps are one product over the steps, too. That of
// another node is added to it, and so are products that are smaller than their
// factors.
// CHECK-LABEL: @steps
// CHECK: nn.dot {{.*}} contract [0] x [0] : tensor<99x8xf32>, tensor<99x6xf32> -> tensor<8x6xf32>
// CHECK: nn.dot {{.*}} contract [0] x [0] : tensor<99x8xf32>, tensor<99x6xf32> -> tensor<8x6xf32>
// CHECK: %[[DY:.*]] = nn.concat %{{.*}}, %{{.*}} dim 0 : (tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<2x2x8xf32>
// CHECK: %[[H:.*]] = nn.concat %{{.*}}, %{{.*}} dim 0 : (tensor<1x2x6xf32>, tensor<1x2x6xf32>) -> tensor<2x2x6xf32>
// CHECK: %[[JOINED:.*]] = nn.dot %[[DY]], %[[H]] batch [] x [] contract [0, 1] x [0, 1] : tensor<2x2x8xf32>, tensor<2x2x6xf32> -> tensor<8x6xf32>
// CHECK: nn.add %{{.*}} : tensor<8x6xf32>
nn.weight @w "w" : tensor<8x6xf32> = dense<1.0> : tensor<8x6xf32> {nn.trained}
nn.weight @u "u" : tensor<8x6xf32> = dense<1.0> : tensor<8x6xf32> {nn.trained}
func.func @steps(%x: tensor<2x6xf32> {nn.name = "x"}, %y: tensor<2x6xf32> {nn.name = "y"}, %z: tensor<99x6xf32> {nn.name = "z"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<8x6xf32>
  %u = nn.parameter @u : tensor<8x6xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [1] : tensor<2x6xf32>, tensor<8x6xf32> -> tensor<2x8xf32> loc("layer")
  %1 = nn.dot %y, %w batch [] x [] contract [1] x [1] : tensor<2x6xf32>, tensor<8x6xf32> -> tensor<2x8xf32> loc("layer")
  %2 = nn.dot %y, %w batch [] x [] contract [1] x [1] : tensor<2x6xf32>, tensor<8x6xf32> -> tensor<2x8xf32> loc("other")
  %3 = nn.mul %0, %1 : tensor<2x8xf32>
  %4 = nn.mul %3, %2 : tensor<2x8xf32>
  %5 = nn.reduce sum %4 [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %6 = nn.dot %z, %u batch [] x [] contract [1] x [1] : tensor<99x6xf32>, tensor<8x6xf32> -> tensor<99x8xf32> loc("layer")
  %7 = nn.exp %z : tensor<99x6xf32>
  %8 = nn.dot %7, %u batch [] x [] contract [1] x [1] : tensor<99x6xf32>, tensor<8x6xf32> -> tensor<99x8xf32> loc("layer")
  %9 = nn.mul %6, %8 : tensor<99x8xf32>
  %10 = nn.reduce sum %9 [0, 1] : tensor<99x8xf32> -> tensor<f32>
  %11 = nn.add %5, %10 : tensor<f32>
  return %11 : tensor<f32>
}

// -----

// Slices that lie side by side have one cotangent, with zeros where there is
// none.
// CHECK-LABEL: @slices
// CHECK-NOT: nn.pad
// CHECK: %[[GAP:.*]] = nn.constant dense<0.000000e+00> : tensor<1x3xf32>
// CHECK: nn.concat %{{.*}}, %[[GAP]], %{{.*}} dim 0 : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<5x3xf32>
nn.weight @w "w" : tensor<5x3xf32> = dense<1.0> : tensor<5x3xf32> {nn.trained}
func.func @slices(%x: tensor<2x3xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<5x3xf32>
  %0 = nn.slice %w [0, 0] to [2, 3] by [1, 1] : tensor<5x3xf32> -> tensor<2x3xf32>
  %1 = nn.slice %w [3, 0] to [5, 3] by [1, 1] : tensor<5x3xf32> -> tensor<2x3xf32>
  %2 = nn.mul %0, %x : tensor<2x3xf32>
  %3 = nn.mul %2, %1 : tensor<2x3xf32>
  %4 = nn.reduce sum %3 [0, 1] : tensor<2x3xf32> -> tensor<f32>
  return %4 : tensor<f32>
}

// RUN: partita-opt --nn-resolve-gradients --split-input-file %s | FileCheck %s

// Of several elements it is the derivative of their sum. A tensor is a variable
// here and a constant there.
// CHECK-LABEL: @constant(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[X]] : tensor<4xf32>
func.func @constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = nn.variable %x number 0 : tensor<4xf32>
  %y = nn.mul %v, %x : tensor<4xf32>
  %g = nn.gradient %y to %v : tensor<4xf32>, (tensor<4xf32>) -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----

// A gradient of a gradient, and one to what nothing depends on through floats.
// CHECK-LABEL: @second(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>,
// CHECK-NEXT: %[[S:.*]] = nn.sinh %[[X]]
// CHECK-NEXT: %[[ZERO:.*]] = nn.constant dense<0.0{{.*}}> : tensor<2xf32>
// CHECK-NEXT: return %[[S]], %[[ZERO]]
func.func @second(%x: tensor<4xf32>, %z: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %outer = nn.variable %x number 0 : tensor<4xf32>
  %far = nn.variable %z number 1 : tensor<2xf32>
  %inner = nn.variable %outer number 2 : tensor<4xf32>
  %y = nn.sinh %inner : tensor<4xf32>
  %g = nn.gradient %y to %inner : tensor<4xf32>, (tensor<4xf32>) -> tensor<4xf32>
  %h:2 = nn.gradient %g to %outer, %far : tensor<4xf32>, (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  return %h#0, %h#1 : tensor<4xf32>, tensor<2xf32>
}

// -----

// What is computed from no variable stays as it is.
// CHECK-LABEL: @layers(
// CHECK: nn.recurrent
// CHECK-NOT: nn.recurrent
// CHECK-COUNT-2: nn.tanh
func.func @layers(%x: tensor<2x1x1x4xf32>, %w: tensor<1x4x4xf32>) -> tensor<1x4x4xf32> {
  %a = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] : tensor<2x1x1x4xf32>, tensor<1x4x4xf32> -> tensor<3x1x1x4xf32>
  %first = nn.slice %a [0, 0, 0, 0] to [2, 1, 1, 4] by [1, 1, 1, 1] : tensor<3x1x1x4xf32> -> tensor<2x1x1x4xf32>
  %v = nn.variable %w number 0 : tensor<1x4x4xf32>
  %b = nn.recurrent rnn %first, %v reversed [false] functions [#nn.gate<tanh>] : tensor<2x1x1x4xf32>, tensor<1x4x4xf32> -> tensor<3x1x1x4xf32>
  %g = nn.gradient %b to %v : tensor<3x1x1x4xf32>, (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return %g : tensor<1x4x4xf32>
}

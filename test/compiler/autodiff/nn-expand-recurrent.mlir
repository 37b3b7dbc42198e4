// RUN: partita-opt --nn-expand-recurrent --split-input-file %s | FileCheck %s
// RUN: partita-opt --nn-expand-recurrent=inputs=true --split-input-file %s | FileCheck %s --check-prefix=INPUTS

// The layer before what is trained stays whole, unless inputs are differentiated.
// CHECK-LABEL: @main
// CHECK: nn.recurrent
// CHECK-NOT: nn.recurrent
// CHECK-COUNT-2: nn.tanh
// CHECK: nn.concat
// INPUTS-NOT: nn.recurrent
// INPUTS-COUNT-4: nn.tanh
nn.weight @w "w" : tensor<1x4x4xf32> = dense<1.0> : tensor<1x4x4xf32> {nn.trained}
func.func @main(%x: tensor<2x1x1x4xf32>) -> (tensor<3x1x1x4xf32> {nn.name = "y"}) {
  %frozen = nn.constant dense<0.5> : tensor<1x4x4xf32>
  %w = nn.parameter @w : tensor<1x4x4xf32>
  %0 = nn.recurrent rnn %x, %frozen reversed [false] functions [#nn.gate<tanh>]
    : tensor<2x1x1x4xf32>, tensor<1x4x4xf32> -> tensor<3x1x1x4xf32>
  %1 = nn.slice %0 [0, 0, 0, 0] to [2, 1, 1, 4] by [1, 1, 1, 1] : tensor<3x1x1x4xf32> -> tensor<2x1x1x4xf32>
  %2 = nn.recurrent rnn %1, %w reversed [false] functions [#nn.gate<tanh>]
    : tensor<2x1x1x4xf32>, tensor<1x4x4xf32> -> tensor<3x1x1x4xf32>
  return %2 : tensor<3x1x1x4xf32>
}

// -----

// A sequence that is shorter keeps its state, and its later results are 0.
// CHECK-LABEL: @lengths
// CHECK: nn.compare gt
// CHECK: nn.select
// INPUTS-LABEL: @lengths
nn.weight @w "w" : tensor<1x4x4xf32> = dense<1.0> : tensor<1x4x4xf32> {nn.trained}
func.func @lengths(%x: tensor<2x3x1x4xf32>, %n: tensor<3xi32>) -> (tensor<3x1x3x4xf32> {nn.name = "y"}) {
  %w = nn.parameter @w : tensor<1x4x4xf32>
  %0 = nn.recurrent rnn %x, %w lengths %n : tensor<3xi32> reversed [true] functions [#nn.gate<relu>]
    : tensor<2x3x1x4xf32>, tensor<1x4x4xf32> -> tensor<3x1x3x4xf32>
  return %0 : tensor<3x1x3x4xf32>
}

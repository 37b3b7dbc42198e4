//===- recurrent.mlir - Layers that run over time -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @recurrent(%x: tensor<3x6x2x2xf32>, %w: tensor<2x2x2xf32>) -> tensor<4x2x6x2xf32> attributes {
    rule = "([m,i,j,l],[j,l,k])->([n,j,i,k]) replicated={k,l,m,n}"} {
  %r = nn.recurrent rnn %x, %w reversed [false, false] functions [#nn.gate<tanh>, #nn.gate<tanh>] : tensor<3x6x2x2xf32>, tensor<2x2x2xf32> -> tensor<4x2x6x2xf32>
  return %r : tensor<4x2x6x2xf32>
}

func.func @recurrent_both_ways(%x: tensor<3x2x2x2xf32>, %w: tensor<2x2x2xf32>) -> tensor<4x2x2x2xf32> attributes {
    rule = "([m,i,j,l],[j,l,k])->([n,j,i,k]) replicated={j,k,l,m,n}"} {
  %r = nn.recurrent rnn %x, %w reversed [false, true] functions [#nn.gate<tanh>, #nn.gate<tanh>] : tensor<3x2x2x2xf32>, tensor<2x2x2xf32> -> tensor<4x2x2x2xf32>
  return %r : tensor<4x2x2x2xf32>
}

func.func @recurrent_gru(%x: tensor<3x4x2x6xf32>, %w: tensor<2x6x2xf32>, %initial: tensor<2x4x2xf32>, %reset_after: tensor<2x2xf32>) -> tensor<4x2x4x2xf32> attributes {
    rule = "([m,i,j,l],[j,l,k],[i],[j,i,k],[j,k])->([n,j,i,k]) replicated={k,l,m,n}"} {
  %lengths = nn.constant dense<[1, 2, 3, 1]> : tensor<4xi32>
  %r = nn.recurrent gru %x, %w lengths %lengths : tensor<4xi32> initial %initial : tensor<2x4x2xf32> reset_after %reset_after : tensor<2x2xf32> reversed [true, true] functions [#nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<logistic>, #nn.gate<tanh>] : tensor<3x4x2x6xf32>, tensor<2x6x2xf32> -> tensor<4x2x4x2xf32>
  return %r : tensor<4x2x4x2xf32>
}

func.func @recurrent_lstm(%x: tensor<3x4x2x8xf32>, %w: tensor<2x8x2xf32>, %initial: tensor<2x4x2xf32>, %initial_cell: tensor<2x4x2xf32>, %peepholes: tensor<2x6xf32>) -> tensor<5x2x4x2xf32> attributes {
    rule = "([m,i,j,l],[j,l,k],[i],[j,i,k],[j,i,k],[j,n])->([o,j,i,k]) replicated={k,l,m,n,o}"} {
  %lengths = nn.constant dense<[1, 2, 3, 1]> : tensor<4xi32>
  %r = nn.recurrent lstm %x, %w lengths %lengths : tensor<4xi32> initial %initial : tensor<2x4x2xf32> initial_cell %initial_cell : tensor<2x4x2xf32> peepholes %peepholes : tensor<2x6xf32> reversed [false, false] functions [#nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<tanh>, #nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<tanh>] : tensor<3x4x2x8xf32>, tensor<2x8x2xf32> -> tensor<5x2x4x2xf32>
  return %r : tensor<5x2x4x2xf32>
}

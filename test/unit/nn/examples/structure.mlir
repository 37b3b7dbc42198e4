//===- structure.mlir - Parameters and constants --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

nn.weight @w "w" : tensor<2x6xf32> = dense<1.0> : tensor<2x6xf32>

func.func @parameter() -> tensor<2x6xf32> attributes {
    rule = "()->([i,j])"} {
  %r = nn.parameter @w : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @constant() -> tensor<2x6xf32> attributes {
    rule = "()->([i,j])"} {
  %r = nn.constant dense<0.5> : tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func @constant_elements() -> tensor<4xf32> attributes {
    rule = "()->([i]) replicated={i}"} {
  %r = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %r : tensor<4xf32>
}

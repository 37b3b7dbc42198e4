//===- reduction.mlir - Reductions, windows, softmax ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @reduce(%x: tensor<4x6x2xf32>) -> tensor<4x2xf32> attributes {
    rule = "([i,j,k])->([i,k]) reduction={j}"} {
  %r = nn.reduce sum %x [1] : tensor<4x6x2xf32> -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func @reduce_prod(%x: tensor<4x6x2xf32>) -> tensor<4x2xf32> attributes {
    rule = "([i,j,k])->([i,k]) reduction(prod)={j}"} {
  %r = nn.reduce prod %x [1] : tensor<4x6x2xf32> -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func @reduce_max(%x: tensor<4x6x2xf32>) -> tensor<4x2xf32> attributes {
    rule = "([i,j,k])->([i,k]) reduction(max)={j}"} {
  %r = nn.reduce max %x [1] : tensor<4x6x2xf32> -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func @reduce_min(%x: tensor<4x6x2xf32>) -> tensor<4x2xf32> attributes {
    rule = "([i,j,k])->([i,k]) reduction(min)={j}"} {
  %r = nn.reduce min %x [1] : tensor<4x6x2xf32> -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func @reduce_all(%x: tensor<4x6xi32>) -> tensor<i32> attributes {
    rule = "([i,j])->([]) reduction={i,j}"} {
  %r = nn.reduce sum %x [0, 1] : tensor<4x6xi32> -> tensor<i32>
  return %r : tensor<i32>
}

func.func @window_reduce(%x: tensor<2x6x4x4xf32>) -> tensor<2x6x2x2xf32> attributes {
    rule = "([i,j,k,m])->([i,j,l,n]) permutation={k,l,m,n}"} {
  %r = nn.window_reduce max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0] : tensor<2x6x4x4xf32> -> tensor<2x6x2x2xf32>
  return %r : tensor<2x6x2x2xf32>
}

func.func @window_arg_max(%x: tensor<2x6x4x4xf32>) -> tensor<2x6x2x2xi32> attributes {
    rule = "([i,j,k,m])->([i,j,l,n]) permutation={k,l,m,n}"} {
  %r = nn.window_arg_max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0] : tensor<2x6x4x4xf32> -> tensor<2x6x2x2xi32>
  return %r : tensor<2x6x2x2xi32>
}

func.func @window_spread(%dy: tensor<2x6x2x2xf32>, %chosen: tensor<2x6x2x2xi32>) -> tensor<2x6x4x4xf32> attributes {
    rule = "([i,j,k,m],[i,j,k,m])->([i,j,l,n]) permutation={k,l,m,n}"} {
  %r = nn.window_spread %dy at %chosen window [1, 1, 2, 3] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 1] x [0, 0, 0, 0] : tensor<2x6x2x2xf32>, tensor<2x6x2x2xi32> -> tensor<2x6x4x4xf32>
  return %r : tensor<2x6x4x4xf32>
}

func.func @softmax(%x: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> attributes {
    rule = "([i,j,k])->([i,j,k]) replicated={j}"} {
  %r = nn.softmax %x dim 1 : tensor<4x5x6xf32>
  return %r : tensor<4x5x6xf32>
}

func.func @softmax_log(%x: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> attributes {
    rule = "([i,j,k])->([i,j,k]) replicated={k}"} {
  %r = nn.softmax %x dim 2 log : tensor<4x5x6xf32>
  return %r : tensor<4x5x6xf32>
}

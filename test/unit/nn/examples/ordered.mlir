//===- ordered.mlir - What depends on the order of elements ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @top_k(%x: tensor<6x10xf32>) -> tensor<6x3xi64> attributes {
    rule = "([i,j])->([i,k]) replicated={j,k}"} {
  %r = nn.top_k largest %x : tensor<6x10xf32> -> tensor<6x3xi64>
  return %r : tensor<6x3xi64>
}

func.func @scan(%x: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> attributes {
    rule = "([i,j,k])->([i,j,k]) replicated={j}"} {
  %r = nn.scan sum %x dim 1 : tensor<4x5x6xf32>
  return %r : tensor<4x5x6xf32>
}

func.func @scatter(%x: tensor<3x6xf32>, %p: tensor<5xi64>, %u: tensor<5x6xf32>) -> tensor<3x6xf32> attributes {
    rule = "([i,j],[k],[k,j])->([i,j]) replicated={i,k}"} {
  %r = nn.scatter %x %p %u : tensor<3x6xf32>, tensor<5xi64>, tensor<5x6xf32>
  return %r : tensor<3x6xf32>
}

func.func @scatter_sum(%x: tensor<3x6xf32>, %p: tensor<5xi64>, %u: tensor<5x6xf32>) -> tensor<3x6xf32> attributes {
    rule = "([i,j],[k],[k,j])->([i,j]) replicated={i,k}"} {
  %r = nn.scatter %x %p %u combine sum : tensor<3x6xf32>, tensor<5xi64>, tensor<5x6xf32>
  return %r : tensor<3x6xf32>
}

// The second sample begins at the end, and goes on at the begin.
func.func @update_slice(%x: tensor<2x4x6x5xf32>, %u: tensor<2x4x3x5xf32>, %s: tensor<2xi64>) -> tensor<2x4x6x5xf32> attributes {
    rule = "([i,j,k,m],[i,j,l,m],[i])->([i,j,k,m]) replicated={k,l}"} {
  %r = nn.update_slice %x, %u, %s dim 2 : tensor<2x4x6x5xf32>, tensor<2x4x3x5xf32>, tensor<2xi64>
  return %r : tensor<2x4x6x5xf32>
}

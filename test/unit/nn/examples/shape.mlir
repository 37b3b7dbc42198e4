//===- shape.mlir - Ops that move elements --------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @reshape(%x: tensor<8x12xf32>) -> tensor<96xf32> attributes {
    rule = "([i,j])->([ij])"} {
  %r = nn.reshape %x : tensor<8x12xf32> -> tensor<96xf32>
  return %r : tensor<96xf32>
}

func.func @reshape_split(%x: tensor<96xf32>) -> tensor<8x12xf32> attributes {
    rule = "([ij])->([i,j])"} {
  %r = nn.reshape %x : tensor<96xf32> -> tensor<8x12xf32>
  return %r : tensor<8x12xf32>
}

func.func @reshape_heads(%x: tensor<2x6x12xf32>) -> tensor<2x6x4x3xf32> attributes {
    rule = "([i,j,kl])->([i,j,k,l])"} {
  %r = nn.reshape %x : tensor<2x6x12xf32> -> tensor<2x6x4x3xf32>
  return %r : tensor<2x6x4x3xf32>
}

func.func @reshape_ones(%x: tensor<1x6x1x4xf32>) -> tensor<6x4x1xf32> attributes {
    rule = "([1,i,1,j])->([i,j,1])"} {
  %r = nn.reshape %x : tensor<1x6x1x4xf32> -> tensor<6x4x1xf32>
  return %r : tensor<6x4x1xf32>
}

func.func @reshape_across(%x: tensor<6x4xf32>) -> tensor<3x8xf32> attributes {
    rule = "([ij,k])->([i,jk])"} {
  %r = nn.reshape %x : tensor<6x4xf32> -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

func.func @reshape_rest(%x: tensor<4x6xf32>) -> tensor<6x4xf32> attributes {
    rule = "([ik,lj])->([im,nj]) replicated={k,l,m,n}"} {
  %r = nn.reshape %x : tensor<4x6xf32> -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

func.func @reshape_no_common(%x: tensor<4x9x5xf32>) -> tensor<9x4x5xf32> attributes {
    rule = "([j,k,i])->([l,m,i]) replicated={j,k,l,m}"} {
  %r = nn.reshape %x : tensor<4x9x5xf32> -> tensor<9x4x5xf32>
  return %r : tensor<9x4x5xf32>
}

func.func @reshape_inner(%x: tensor<3x4x4xf32>) -> tensor<4x3x4xf32> attributes {
    rule = "([j,k,i])->([l,m,i]) replicated={j,k,l,m}"} {
  %r = nn.reshape %x : tensor<3x4x4xf32> -> tensor<4x3x4xf32>
  return %r : tensor<4x3x4xf32>
}

func.func @reshape_scalar(%x: tensor<1x1xf32>) -> tensor<f32> attributes {
    rule = "([1,1])->([])"} {
  %r = nn.reshape %x : tensor<1x1xf32> -> tensor<f32>
  return %r : tensor<f32>
}

func.func @reshape_empty(%x: tensor<0x4xf32>) -> tensor<2x0xf32> attributes {
    rule = "([i,j])->([k,l]) replicated={i,j,k,l}"} {
  %r = nn.reshape %x : tensor<0x4xf32> -> tensor<2x0xf32>
  return %r : tensor<2x0xf32>
}

func.func @transpose(%x: tensor<2x3x4xf32>) -> tensor<3x4x2xf32> attributes {
    rule = "([i,j,k])->([j,k,i])"} {
  %r = nn.transpose %x [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  return %r : tensor<3x4x2xf32>
}

func.func @broadcast(%x: tensor<4x1xf32>) -> tensor<2x4x6xf32> attributes {
    rule = "([j,1])->([i,j,k])"} {
  %r = nn.broadcast %x [1, 2] : tensor<4x1xf32> -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

func.func @slice(%x: tensor<4x8x6xf32>) -> tensor<4x3x6xf32> attributes {
    rule = "([i,j,l])->([i,k,l]) permutation={j,k}"} {
  %r = nn.slice %x [0, 1, 0] to [4, 6, 6] by [1, 2, 1] : tensor<4x8x6xf32> -> tensor<4x3x6xf32>
  return %r : tensor<4x3x6xf32>
}

func.func @slice_of_blocks(%x: tensor<4x12xf32>) -> tensor<4x4xf32> attributes {
    rule = "([i,jk])->([i,k]) blocked={j}"} {
  %r = nn.slice %x [0, 4] to [4, 8] by [1, 1] : tensor<4x12xf32> -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func @slice_from_groups(%x: tensor<4x12xf32>) -> tensor<4x4xf32> attributes {
    rule = "([i,kj])->([i,k]) replicated={j}"} {
  %r = nn.slice %x [0, 2] to [4, 12] by [1, 3] : tensor<4x12xf32> -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func @reverse(%x: tensor<4x5x6xf32>) -> tensor<4x5x6xf32> attributes {
    rule = "([i,j,k])->([i,j,k]) permutation={j}"} {
  %r = nn.reverse %x [1] : tensor<4x5x6xf32>
  return %r : tensor<4x5x6xf32>
}

func.func @pad(%x: tensor<2x8x6xf32>, %v: tensor<f32>) -> tensor<2x11x6xf32> attributes {
    rule = "([i,j,l],[])->([i,k,l]) permutation={j,k}"} {
  %r = nn.pad %x, %v low [0, 1, 0] high [0, 2, 0] : tensor<2x8x6xf32>, tensor<f32> -> tensor<2x11x6xf32>
  return %r : tensor<2x11x6xf32>
}

func.func @concat(%x: tensor<6x3xf32>, %y: tensor<6x5xf32>) -> tensor<6x8xf32> attributes {
    rule = "([i,k],[i,l])->([i,j]) blocked={j,k,l}"} {
  %r = nn.concat %x, %y dim 1 : (tensor<6x3xf32>, tensor<6x5xf32>) -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

func.func @concat_of_blocks(%x: tensor<6x4xf32>, %y: tensor<6x4xf32>) -> tensor<6x8xf32> attributes {
    rule = "([i,k],[i,k])->([i,jk]) blocked={j}"} {
  %r = nn.concat %x, %y dim 1 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

func.func @gather(%x: tensor<4x5x6xf32>, %n: tensor<2x3xi64>) -> tensor<4x2x3x6xf32> attributes {
    rule = "([i,j,k],[l,m])->([i,l,m,k]) reduction={j}"} {
  %r = nn.gather %x, %n dim 1 : tensor<4x5x6xf32>, tensor<2x3xi64> -> tensor<4x2x3x6xf32>
  return %r : tensor<4x2x3x6xf32>
}

func.func @gather_elements(%x: tensor<4x3x6xf32>, %n: tensor<4x6x4xi64>) -> tensor<4x6x4xf32> attributes {
    rule = "([i,j,l],[i,k,m])->([i,k,m]) permutation={l,m} reduction={j}"} {
  %r = nn.gather_elements %x, %n dim 1 : tensor<4x3x6xf32>, tensor<4x6x4xi64> -> tensor<4x6x4xf32>
  return %r : tensor<4x6x4xf32>
}

func.func @iota() -> tensor<4x3x6xi64> attributes {
    rule = "()->([i,j,k]) replicated={j}"} {
  %r = nn.iota 1 : tensor<4x3x6xi64>
  return %r : tensor<4x3x6xi64>
}

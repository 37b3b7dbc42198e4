//===- contraction.mlir - Dot, convolution, attention ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @dot(%x: tensor<4x6xf32>, %y: tensor<6x2xf32>) -> tensor<4x2xf32> attributes {
    rule = "([i,k],[k,j])->([i,j]) reduction={k}"} {
  %r = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<4x6xf32>, tensor<6x2xf32> -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func @dot_batch(%x: tensor<3x2x6xf32>, %y: tensor<6x4x3xf32>) -> tensor<3x2x4xf32> attributes {
    rule = "([i,j,l],[l,k,i])->([i,j,k]) reduction={l}"} {
  %r = nn.dot %x, %y batch [0] x [2] contract [2] x [0] : tensor<3x2x6xf32>, tensor<6x4x3xf32> -> tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}

func.func @dot_two_contracted(%x: tensor<2x3x4xf32>, %y: tensor<4x2x2xf32>) -> tensor<3x2xf32> attributes {
    rule = "([k,i,l],[l,k,j])->([i,j]) reduction={k,l}"} {
  %r = nn.dot %x, %y batch [] x [] contract [0, 2] x [1, 0] : tensor<2x3x4xf32>, tensor<4x2x2xf32> -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}

func.func @dot_integers(%x: tensor<4x6xui8>, %y: tensor<6x2xi8>) -> tensor<4x2xi32> attributes {
    rule = "([i,k],[k,j])->([i,j]) reduction={k}"} {
  %r = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<4x6xui8>, tensor<6x2xi8> -> tensor<4x2xi32>
  return %r : tensor<4x2xi32>
}

func.func @dot_inner(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<f32> attributes {
    rule = "([i],[i])->([]) reduction={i}"} {
  %r = nn.dot %x, %y batch [] x [] contract [0] x [0] : tensor<6xf32>, tensor<6xf32> -> tensor<f32>
  return %r : tensor<f32>
}

func.func @conv(%x: tensor<2x6x5x5xf32>, %w: tensor<4x6x3x3xf32>) -> tensor<2x4x5x5xf32> attributes {
    rule = "([i,k,m,p],[j,k,l,o])->([i,j,n,q]) permutation={m,n,p,q} reduction={k} replicated={l,o}"} {
  %r = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<2x6x5x5xf32>, tensor<4x6x3x3xf32> -> tensor<2x4x5x5xf32>
  return %r : tensor<2x4x5x5xf32>
}

func.func @conv_channels_last(%x: tensor<2x5x5x6xf32>, %w: tensor<4x6x3x3xf32>) -> tensor<2x5x5x4xf32> attributes {
    rule = "([i,m,p,k],[j,k,l,o])->([i,n,q,j]) permutation={m,n,p,q} reduction={k} replicated={l,o}"} {
  %r = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<2x5x5x6xf32>, tensor<4x6x3x3xf32> -> tensor<2x5x5x4xf32>
  return %r : tensor<2x5x5x4xf32>
}

func.func @conv_pixels(%x: tensor<2x6x4x3xf32>, %w: tensor<4x6x1x1xf32>) -> tensor<2x4x4x3xf32> attributes {
    rule = "([i,k,m,o],[j,k,l,n])->([i,j,m,o]) reduction={k} replicated={l,n}"} {
  %r = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1 : tensor<2x6x4x3xf32>, tensor<4x6x1x1xf32> -> tensor<2x4x4x3xf32>
  return %r : tensor<2x4x4x3xf32>
}

func.func @conv_groups(%x: tensor<2x12x4x4xf32>, %w: tensor<12x2x3x3xf32>) -> tensor<2x12x2x2xf32> attributes {
    rule = "([i,jl,n,q],[jk,l,m,p])->([i,jk,o,r]) permutation={n,o,q,r} reduction={l} replicated={m,p}"} {
  %r = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 6 : tensor<2x12x4x4xf32>, tensor<12x2x3x3xf32> -> tensor<2x12x2x2xf32>
  return %r : tensor<2x12x2x2xf32>
}

func.func @conv_groups_channels_last(%x: tensor<1x4x4x8xf32>, %w: tensor<12x4x3x3xf32>) -> tensor<1x2x2x12xf32> attributes {
    rule = "([i,n,q,jl],[jk,l,m,p])->([i,o,r,jk]) permutation={n,o,q,r} reduction={l} replicated={m,p}"} {
  %r = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 2 : tensor<1x4x4x8xf32>, tensor<12x4x3x3xf32> -> tensor<1x2x2x12xf32>
  return %r : tensor<1x2x2x12xf32>
}

func.func @conv_depthwise(%x: tensor<1x6x4x4xf32>, %w: tensor<6x1x3x3xf32>) -> tensor<1x6x2x2xf32> attributes {
    rule = "([i,jl,n,q],[jk,l,m,p])->([i,jk,o,r]) permutation={n,o,q,r} reduction={l} replicated={m,p}"} {
  %r = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 6 : tensor<1x6x4x4xf32>, tensor<6x1x3x3xf32> -> tensor<1x6x2x2xf32>
  return %r : tensor<1x6x2x2xf32>
}

func.func @conv_integers(%x: tensor<2x6x5xui8>, %w: tensor<4x3x3xi8>) -> tensor<2x4x2xi32> attributes {
    rule = "([i,jl,n],[jk,l,m])->([i,jk,o]) permutation={n,o} reduction={l} replicated={m}"} {
  %r = nn.conv %x, %w channels_first strides [2] dilations [1] pads [0] x [0] groups 2 : tensor<2x6x5xui8>, tensor<4x3x3xi8> -> tensor<2x4x2xi32>
  return %r : tensor<2x4x2xi32>
}

func.func @conv_dx(%dy: tensor<2x4x5x5xf32>, %w: tensor<4x6x3x3xf32>) -> tensor<2x6x5x5xf32> attributes {
    rule = "([i,j,n,q],[j,k,l,o])->([i,k,m,p]) permutation={m,n,p,q} reduction={j} replicated={l,o}"} {
  %r = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<2x4x5x5xf32>, tensor<4x6x3x3xf32> -> tensor<2x6x5x5xf32>
  return %r : tensor<2x6x5x5xf32>
}

func.func @conv_dx_pixels(%dy: tensor<2x4x4x3xf32>, %w: tensor<4x6x1x1xf32>) -> tensor<2x6x4x3xf32> attributes {
    rule = "([i,j,m,o],[j,k,l,n])->([i,k,m,o]) reduction={j} replicated={l,n}"} {
  %r = nn.conv_dx %dy, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1 : tensor<2x4x4x3xf32>, tensor<4x6x1x1xf32> -> tensor<2x6x4x3xf32>
  return %r : tensor<2x6x4x3xf32>
}

func.func @conv_dx_groups(%dy: tensor<1x3x2x12xf32>, %w: tensor<12x4x3x3xf32>) -> tensor<1x8x6x8xf32> attributes {
    rule = "([i,o,r,jk],[jk,l,m,p])->([i,n,q,jl]) permutation={n,o,q,r} reduction={k} replicated={m,p}"} {
  %r = nn.conv_dx %dy, %w channels_last strides [2, 3] dilations [2, 1] pads [1, 0] x [0, 1] groups 2 : tensor<1x3x2x12xf32>, tensor<12x4x3x3xf32> -> tensor<1x8x6x8xf32>
  return %r : tensor<1x8x6x8xf32>
}

func.func @conv_dw(%x: tensor<2x6x5x5xf32>, %dy: tensor<2x4x5x5xf32>) -> tensor<4x6x3x3xf32> attributes {
    rule = "([i,k,m,p],[i,j,n,q])->([j,k,l,o]) permutation={l,o} reduction={i} replicated={m,n,p,q}"} {
  %r = nn.conv_dw %x, %dy channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<2x6x5x5xf32>, tensor<2x4x5x5xf32> -> tensor<4x6x3x3xf32>
  return %r : tensor<4x6x3x3xf32>
}

func.func @conv_dw_pixels(%x: tensor<2x6x4x3xf32>, %dy: tensor<2x4x4x3xf32>) -> tensor<4x6x1x1xf32> attributes {
    rule = "([i,k,m,o],[i,j,m,o])->([j,k,l,n]) permutation={l,n} reduction={i,m,o}"} {
  %r = nn.conv_dw %x, %dy channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1 : tensor<2x6x4x3xf32>, tensor<2x4x4x3xf32> -> tensor<4x6x1x1xf32>
  return %r : tensor<4x6x1x1xf32>
}

func.func @conv_dw_groups(%x: tensor<1x8x6x8xf32>, %dy: tensor<1x3x2x12xf32>) -> tensor<12x4x3x3xf32> attributes {
    rule = "([i,n,q,jl],[i,o,r,jk])->([jk,l,m,p]) permutation={m,p} reduction={i} replicated={n,o,q,r}"} {
  %r = nn.conv_dw %x, %dy channels_last strides [2, 3] dilations [2, 1] pads [1, 0] x [0, 1] groups 2 : tensor<1x8x6x8xf32>, tensor<1x3x2x12xf32> -> tensor<12x4x3x3xf32>
  return %r : tensor<12x4x3x3xf32>
}

func.func @packed_dot(%x: tensor<2x4x32xf32>, %w: tensor<6x2x8xui8>, %s: tensor<6x2xf32>) -> tensor<2x4x6xf32> attributes {
    rule = "([i,j,kl],[m,k,n],[m,k])->([i,j,m]) reduction={k} replicated={l,n}"} {
  %r = nn.packed_dot %x, %w, %s bits 4 : tensor<2x4x32xf32>, tensor<6x2x8xui8>, tensor<6x2xf32> -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// The last block is not whole.
func.func @packed_dot_zeros(%x: tensor<4x30xf32>, %w: tensor<6x2x4xui8>, %s: tensor<6x2xf32>, %z: tensor<6x2xf32>) -> tensor<4x6xf32> attributes {
    rule = "([i,k],[l,j,m],[l,j],[l,j])->([i,l]) replicated={j,k,m}"} {
  %r = nn.packed_dot %x, %w, %s zeros %z : tensor<6x2xf32> bits 2 : tensor<4x30xf32>, tensor<6x2x4xui8>, tensor<6x2xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func @expert_dot(%x: tensor<6x2x8xf32>, %w: tensor<4x10x8xf32>, %e: tensor<6x2xi64>) -> tensor<6x2x10xf32> attributes {
    rule = "([i,j,k],[l,m,k],[i,j])->([i,j,m]) reduction={k,l}"} {
  %r = nn.expert_dot %x, %w experts %e : tensor<6x2x8xf32>, tensor<4x10x8xf32>, tensor<6x2xi64> -> tensor<6x2x10xf32>
  return %r : tensor<6x2x10xf32>
}

func.func @expert_outer(%dy: tensor<6x2x10xf32>, %x: tensor<6x2x8xf32>, %e: tensor<6x2xi64>) -> tensor<4x10x8xf32> attributes {
    rule = "([i,j,m],[i,j,k],[i,j])->([l,m,k]) reduction={i,j}"} {
  %r = nn.expert_outer %dy, %x experts %e : tensor<6x2x10xf32>, tensor<6x2x8xf32>, tensor<6x2xi64> -> tensor<4x10x8xf32>
  return %r : tensor<4x10x8xf32>
}

func.func @packed_dot_experts(%x: tensor<4x64xf32>, %w: tensor<3x6x4x8xui8>, %s: tensor<3x6x4xf32>, %z: tensor<3x6x4xf32>, %e: tensor<4xi64>) -> tensor<4x6xf32> attributes {
    rule = "([i,jk],[n,l,j,m],[n,l,j],[n,l,j],[i])->([i,l]) reduction={j,n} replicated={k,m}"} {
  %r = nn.packed_dot %x, %w, %s zeros %z : tensor<3x6x4xf32> experts %e : tensor<4xi64> bits 4 : tensor<4x64xf32>, tensor<3x6x4x8xui8>, tensor<3x6x4xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func @attention(%q: tensor<2x4x6x3xf32>, %k: tensor<2x4x5x3xf32>, %v: tensor<2x4x5x2xf32>) -> tensor<2x4x6x2xf32> attributes {
    rule = "([i,j,k,n],[i,j,m,n],[i,j,m,l])->([i,j,k,l]) replicated={m,n}"} {
  %r = nn.attention %q, %k, %v scale 0.5 : tensor<2x4x6x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32> -> tensor<2x4x6x2xf32>
  return %r : tensor<2x4x6x2xf32>
}

func.func @attention_masks(%q: tensor<2x4x6x3xf32>, %k: tensor<2x4x5x3xf32>, %v: tensor<2x4x5x2xf32>, %m: tensor<2x4x6x5xf32>, %a: tensor<1x4x1x5xf32>) -> tensor<2x4x6x2xf32> attributes {
    rule = "([i,j,k,n],[i,j,m,n],[i,j,m,l],[i,j,k,m],[1,j,1,m])->([i,j,k,l]) replicated={m,n}"} {
  %r = nn.attention %q, %k, %v mask_mul %m : tensor<2x4x6x5xf32> mask_add %a : tensor<1x4x1x5xf32> scale 0.5 : tensor<2x4x6x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32> -> tensor<2x4x6x2xf32>
  return %r : tensor<2x4x6x2xf32>
}

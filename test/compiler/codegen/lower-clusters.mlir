// RUN: partita-opt --lower-clusters %s | FileCheck %s
// RUN: sed "/%only/!s/cluster call/cluster kernel/" %s | partita-opt --lower-clusters=reference=true | FileCheck %s --check-prefix=PLAIN --implicit-check-not="call<dot" --implicit-check-not="call<conv" --implicit-check-not="in_place = ["

func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: lowering = #plan.call<dot
  // CHECK-SAME: #plan.post_op<add
  // CHECK-SAME: #plan.post_op<relu
  %0 = nn.cluster call (%a0 = %x, %a1 = %w, %a2 = %b) : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %c = nn.broadcast %a2 [1] : tensor<8xf32> -> tensor<4x8xf32>
    %s = nn.add %d, %c : tensor<4x8xf32>
    %r = nn.relu %s : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  // Clusters that compute the same share a kernel.
  // CHECK: lowering = #plan.kernel<"k0_softmax", extent = 4, grain = 4, in_place = [0, 0]>
  %1 = nn.cluster kernel (%a0 = %0) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  // CHECK: lowering = #plan.kernel<"k0_softmax"
  %2 = nn.cluster kernel (%a0 = %1) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// What a convolution may add upon is what the result's bytes held before.
func.func @sum(%x: tensor<1x8x8x4xf32>, %w: tensor<4x4x1x1xf32>, %r: tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32> {
  // CHECK: lowering = #plan.call<conv
  // CHECK-SAME: post_ops = [#plan.post_op<sum, view = #plan.view<2 shape [1, 4, 8, 8] strides [256, 1, 32, 4]>>, #plan.post_op<relu>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w, %a2 = %r) : (tensor<1x8x8x4xf32>, tensor<4x4x1x1xf32>, tensor<1x8x8x4xf32>) -> tensor<1x8x8x4xf32> {
    %d = nn.conv %a0, %a1 channels_last strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
      : tensor<1x8x8x4xf32>, tensor<4x4x1x1xf32> -> tensor<1x8x8x4xf32>
    %s = nn.add %d, %a2 {nn.accumulate} : tensor<1x8x8x4xf32>
    %t = nn.relu %s : tensor<1x8x8x4xf32>
    nn.yield %t : tensor<1x8x8x4xf32>
  }
  return %0 : tensor<1x8x8x4xf32>
}

// The loop over time stays in one call.
func.func @layer(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>, %h: tensor<1x2x4xf32>) -> tensor<8x1x2x4xf32> {
  // CHECK: lowering = #plan.call<recurrent, operands = [#plan.view<0 shape [7, 2, 1, 4] strides [8, 4, 4, 1]>, #plan.view<1 shape [1, 4, 4] strides [16, 4, 1]>, #plan.view<3 shape [8, 1, 2, 4] strides [8, 8, 4, 1]>], details = #plan.recurrent<rnn, reversed = [0], functions = [#plan.gate<tanh>], initial = #plan.view<2 shape [1, 2, 4] strides [8, 4, 1]>>>
  %0 = nn.cluster call (%only = %x, %a1 = %w, %a2 = %h) : (tensor<7x2x1x4xf32>, tensor<1x4x4xf32>, tensor<1x2x4xf32>) -> tensor<8x1x2x4xf32> {
    %r = nn.recurrent rnn %only, %a1 initial %a2 : tensor<1x2x4xf32> reversed [false] functions [#nn.gate<tanh>]
      : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
    nn.yield %r : tensor<8x1x2x4xf32>
  }
  return %0 : tensor<8x1x2x4xf32>
}

// Bounds far from zero are bounds all the same.
func.func @far(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK: lowering = #plan.call<dot
  // CHECK-SAME: post_ops = [#plan.post_op<clip, alpha = -6.550400e+04, beta = 6.550400e+04>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %low = nn.constant dense<-65504.0> : tensor<4x8xf32>
    %high = nn.constant dense<65504.0> : tensor<4x8xf32>
    %s = nn.max %d, %low : tensor<4x8xf32>
    %r = nn.min %s, %high : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// So are bounds near to zero: a logarithm may follow. Where there is none,
// infinity passes.
func.func @near(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK: lowering = #plan.call<dot
  // CHECK-SAME: post_ops = [#plan.post_op<clip, alpha = {{1[.0-9]*[eE]-0?10}}, beta = 0x7FF0000000000000>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %low = nn.constant dense<1.0e-10> : tensor<4x8xf32>
    %s = nn.max %d, %low : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// A scale gives 0 for 0: it has no offset that comes of rounding.
func.func @scale(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK: lowering = #plan.call<dot
  // CHECK-SAME: post_ops = [#plan.post_op<linear, alpha = 0.0050506{{[0-9]*}}>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %factor = nn.constant dense<0.005050634> : tensor<4x8xf32>
    %s = nn.mul %d, %factor : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// A result that nothing else reads is cut as what is beside it.
func.func @apart(%x: tensor<512x4000xf32>, %y: tensor<512xi64>) -> (tensor<512xi64>, tensor<512x4000xf32>) {
  // CHECK: lowering = #plan.kernel<"k1_softmax", extent = 512
  %0:2 = nn.cluster kernel (%a0 = %x, %a1 = %y) : (tensor<512x4000xf32>, tensor<512xi64>) -> (tensor<512xi64>, tensor<512x4000xf32>) {
    %c = nn.constant dense<7> : tensor<512xi64>
    %t = nn.mul %a1, %c : tensor<512xi64>
    %s = nn.softmax %a0 dim 1 : tensor<512x4000xf32>
    nn.yield %t, %s : tensor<512xi64>, tensor<512x4000xf32>
  }
  return %0#0, %0#1 : tensor<512xi64>, tensor<512x4000xf32>
}

// As a reference: loops that compute one element after the other.
// PLAIN: lowering = #plan.kernel<"k0_dot", extent = 32
// PLAIN: lowering = #plan.kernel<"k1_softmax", extent = 4
// PLAIN: lowering = #plan.kernel<"k2_conv", extent = 256
// PLAIN: lowering = #plan.kernel<"k3_dot", extent = 32
// PLAIN: lowering = #plan.kernel<"k4_dot", extent = 32
// PLAIN: lowering = #plan.kernel<"k5_dot", extent = 32
// PLAIN: lowering = #plan.kernel<"k6_softmax", extent = 512
// PLAIN: lowering = #plan.call<top_k
// PLAIN: func.func @k0_dot({{.*}} attributes {nn.reference, nn.schedule = 
func.func @ordered(%x: tensor<2x5xf32>) -> tensor<2x3xi64> {
  %0 = nn.cluster call (%only = %x) : (tensor<2x5xf32>) -> tensor<2x3xi64> {
    %i = nn.top_k largest %only : tensor<2x5xf32> -> tensor<2x3xi64>
    nn.yield %i : tensor<2x3xi64>
  }
  return %0 : tensor<2x3xi64>
}

// Weights stay packed. Rows of batches are rows.
func.func @packed(%x: tensor<2x3x30xf32>, %w: tensor<5x2x8xui8>, %s: tensor<5x2xf32>, %z: tensor<5x2xf32>) -> tensor<2x3x5xf32> {
  // CHECK: lowering = #plan.call<packed_dot, operands = [#plan.view<0 shape [6, 30] strides [30, 1]>, #plan.view<1 shape [5, 2, 8] strides [16, 8, 1]>, #plan.view<2 shape [5, 2] strides [2, 1]>, #plan.view<4 shape [6, 5] strides [5, 1]>], details = #plan.packed_dot<bits = 4, zeros = #plan.view<3 shape [5, 2] strides [2, 1]>>>
  %0 = nn.cluster call (%only = %x, %a1 = %w, %a2 = %s, %a3 = %z) : (tensor<2x3x30xf32>, tensor<5x2x8xui8>, tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<2x3x5xf32> {
    %r = nn.packed_dot %only, %a1, %a2 zeros %a3 : tensor<5x2xf32> bits 4 : tensor<2x3x30xf32>, tensor<5x2x8xui8>, tensor<5x2xf32> -> tensor<2x3x5xf32>
    nn.yield %r : tensor<2x3x5xf32>
  }
  return %0 : tensor<2x3x5xf32>
}

// Matrices of experts are read as they lie, transposed too.
func.func @experts(%x: tensor<3x2x5xf32>, %w: tensor<4x5x6xf32>, %e: tensor<3x2xi64>) -> tensor<3x2x6xf32> {
  // CHECK: lowering = #plan.call<expert_dot, operands = [#plan.view<0 shape [6, 5] strides [5, 1]>, #plan.view<1 shape [4, 6, 5] strides [30, 1, 6]>, #plan.view<2 shape [6] strides [1]>, #plan.view<3 shape [6, 6] strides [6, 1]>]>
  %0 = nn.cluster call (%only = %x, %a1 = %w, %a2 = %e) : (tensor<3x2x5xf32>, tensor<4x5x6xf32>, tensor<3x2xi64>) -> tensor<3x2x6xf32> {
    %t = nn.transpose %a1 [0, 2, 1] : tensor<4x5x6xf32> -> tensor<4x6x5xf32>
    %r = nn.expert_dot %only, %t experts %a2 : tensor<3x2x5xf32>, tensor<4x6x5xf32>, tensor<3x2xi64> -> tensor<3x2x6xf32>
    nn.yield %r : tensor<3x2x6xf32>
  }
  return %0 : tensor<3x2x6xf32>
}

func.func @expert_outer(%dy: tensor<3x2x6xf32>, %x: tensor<3x2x5xf32>, %e: tensor<3x2xi64>) -> tensor<4x6x5xf32> {
  // CHECK: lowering = #plan.call<expert_outer, operands = [#plan.view<0 shape [6, 6] strides [6, 1]>, #plan.view<1 shape [6, 5] strides [5, 1]>, #plan.view<2 shape [6] strides [1]>, #plan.view<3 shape [4, 6, 5] strides [30, 5, 1]>]>
  %0 = nn.cluster call (%only = %dy, %a1 = %x, %a2 = %e) : (tensor<3x2x6xf32>, tensor<3x2x5xf32>, tensor<3x2xi64>) -> tensor<4x6x5xf32> {
    %r = nn.expert_outer %only, %a1 experts %a2 : tensor<3x2x6xf32>, tensor<3x2x5xf32>, tensor<3x2xi64> -> tensor<4x6x5xf32>
    nn.yield %r : tensor<4x6x5xf32>
  }
  return %0 : tensor<4x6x5xf32>
}

// The dimensions before and behind the one that is written are one each. The
// update may be written where the tensor lies.
func.func @slice(%x: tensor<2x4x6x5xf16>, %u: tensor<2x4x3x5xf16>, %s: tensor<2xi64>) -> tensor<2x4x6x5xf16> {
  // CHECK: lowering = #plan.call<update_slice, operands = [#plan.view<0 shape [8, 6, 5] strides [30, 5, 1]>, #plan.view<1 shape [8, 3, 5] strides [15, 5, 1]>, #plan.view<2 shape [2] strides [1]>, #plan.view<3 shape [8, 6, 5] strides [30, 5, 1]>]>
  %0 = nn.cluster call (%only = %x, %a1 = %u, %a2 = %s) : (tensor<2x4x6x5xf16>, tensor<2x4x3x5xf16>, tensor<2xi64>) -> tensor<2x4x6x5xf16> {
    %r = nn.update_slice %only, %a1, %a2 dim 2 : tensor<2x4x6x5xf16>, tensor<2x4x3x5xf16>, tensor<2xi64>
    nn.yield %r : tensor<2x4x6x5xf16>
  }
  return %0 : tensor<2x4x6x5xf16>
}

// CHECK: module @kernels
// CHECK: func.func @k0_softmax(%{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: func.func @k1_softmax
// CHECK-NOT: func.func

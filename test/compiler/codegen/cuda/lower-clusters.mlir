// RUN: partita-opt --lower-clusters --split-input-file -verify-diagnostics %s | FileCheck %s

module attributes {plan.target = "cuda:sm_90"} {
  nn.weight @w "w" : tensor<1000x1000xf32> = dense<1.0> : tensor<1000x1000xf32>
  // Enough elements for every thread to have four.
  // CHECK: #plan.kernel<"k0_add", extent = 0, grain = 1, in_place = [0, 0], launch = [977, 256]>
  func.func @pointwise(%x: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
    %w = nn.parameter @w : tensor<1000x1000xf32>
    %0 = nn.cluster kernel (%a = %x, %b = %w) : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
      %s = nn.add %a, %b : tensor<1000x1000xf32>
      nn.yield %s : tensor<1000x1000xf32>
    }
    return %0 : tensor<1000x1000xf32>
  }
  // Warps for short rows, blocks for long ones, a thread a column.
  // CHECK: #plan.kernel<"k1_softmax", extent = 0, grain = 1, in_place = [0, 0], launch = [16, 128]>
  // CHECK: #plan.kernel<"k2_softmax", extent = 0, grain = 1, in_place = [0, 0], launch = [64, 256]>
  // CHECK: #plan.kernel<"k3_reduce", extent = 0, grain = 1, launch = [8, 128]>
  func.func @rows(%x: tensor<64x100xf32>, %y: tensor<64x5000xf32>, %z: tensor<64x1000xf32>) -> (tensor<64x100xf32>, tensor<64x5000xf32>, tensor<1000xf32>) {
    %0 = nn.cluster kernel (%a = %x) : (tensor<64x100xf32>) -> tensor<64x100xf32> {
      %s = nn.softmax %a dim 1 : tensor<64x100xf32>
      nn.yield %s : tensor<64x100xf32>
    }
    %1 = nn.cluster kernel (%a = %y) : (tensor<64x5000xf32>) -> tensor<64x5000xf32> {
      %s = nn.softmax %a dim 1 : tensor<64x5000xf32>
      nn.yield %s : tensor<64x5000xf32>
    }
    %2 = nn.cluster kernel (%a = %z) : (tensor<64x1000xf32>) -> tensor<1000xf32> {
      %s = nn.reduce sum %a [0] : tensor<64x1000xf32> -> tensor<1000xf32>
      nn.yield %s : tensor<1000xf32>
    }
    return %0, %1, %2 : tensor<64x100xf32>, tensor<64x5000xf32>, tensor<1000xf32>
  }
  // CHECK: func.func @k0_add(%{{.*}}: tensor<1000x1000xf32>, %{{.*}}: tensor<1000x1000xf32> {nn.unaligned}, %{{.*}}: tensor<1000x1000xf32>)
  // CHECK-SAME: nn.grid = {team = 1 : i64, threads = 256 : i64, width = 4 : i64}
}

// -----

module attributes {plan.target = "cuda:sm_90"} {
  // The rank of each element, then the element of each rank: a row is a warp's.
  // CHECK: #plan.kernel<"k0_top_k", extent = 0, grain = 1, launch = [1, 128]>
  func.func @ordered(%x: tensor<2x5xf32>) -> tensor<2x3xi64> {
    %0 = nn.cluster kernel (%only = %x) : (tensor<2x5xf32>) -> tensor<2x3xi64> {
      %i = nn.top_k largest %only : tensor<2x5xf32> -> tensor<2x3xi64>
      nn.yield %i : tensor<2x3xi64>
    }
    return %0 : tensor<2x3xi64>
  }
  // A block for each of two sequences.
  // CHECK: #plan.kernel<"k1_recurrent", extent = 0, grain = 1, launch = [2, 256]>
  func.func @recurrent(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>) -> tensor<8x1x2x4xf32> {
    %0 = nn.cluster kernel (%a = %x, %b = %w) : (tensor<7x2x1x4xf32>, tensor<1x4x4xf32>) -> tensor<8x1x2x4xf32> {
      %r = nn.recurrent rnn %a, %b reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
      nn.yield %r : tensor<8x1x2x4xf32>
    }
    return %0 : tensor<8x1x2x4xf32>
  }
}

// -----

module attributes {plan.target = "cuda:sm_90"} {
  func.func @recurrent(%x: tensor<7x2x1x4096xf32>, %w: tensor<1x4096x4096xf32>) -> tensor<8x1x2x4096xf32> {
    %0 = nn.cluster kernel (%a = %x, %b = %w) : (tensor<7x2x1x4096xf32>, tensor<1x4096x4096xf32>) -> tensor<8x1x2x4096xf32> {
      // expected-error@+1 {{has no kernel for CUDA devices: its states are 65536 bytes, and shared memory has 49152}}
      %r = nn.recurrent rnn %a, %b reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4096xf32>, tensor<1x4096x4096xf32> -> tensor<8x1x2x4096xf32>
      nn.yield %r : tensor<8x1x2x4096xf32>
    }
    return %0 : tensor<8x1x2x4096xf32>
  }
}

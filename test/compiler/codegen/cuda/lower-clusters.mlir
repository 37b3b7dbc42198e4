// RUN: partita-opt --lower-clusters --split-input-file -verify-diagnostics %s | FileCheck %s

module attributes {plan.target = "cuda:sm_90"} {
  nn.weight @w "w" : tensor<1000x1000xf32> = dense<1.0> : tensor<1000x1000xf32>
  // Enough elements for every thread to have four.
  // CHECK: #plan.kernel<"k0_add", extent = 0, grain = 1, in_place = [0, 0, 1, 0], launch = [977, 256]>
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
  // Transposes: tiles of 32x32, also at edges and where more is computed of
  // what was transposed; longer ones where one side is short or elements are.
  // CHECK: #plan.kernel<"k4_relu", extent = 0, grain = 1, in_place = [2, 0], launch = [3072, 256]>
  // CHECK: #plan.kernel<"k5_transpose", extent = 0, grain = 1, launch = [157, 256]>
  // CHECK: #plan.kernel<"k6_transpose", extent = 0, grain = 1, launch = [256, 256]>
  func.func @transposes(%x: tensor<4x1000x768xf32>, %bias: tensor<1000xf32>, %y: tensor<4x768x1000xf32>, %image: tensor<50000x3xf32>, %half: tensor<1000x1000xf16>) -> (tensor<4x768x1000xf32>, tensor<3x50000xf32>, tensor<1000x1000xf16>) {
    %0 = nn.cluster kernel (%a = %x, %b = %bias, %c = %y) : (tensor<4x1000x768xf32>, tensor<1000xf32>, tensor<4x768x1000xf32>) -> tensor<4x768x1000xf32> {
      %t = nn.transpose %a [0, 2, 1] : tensor<4x1000x768xf32> -> tensor<4x768x1000xf32>
      %w = nn.broadcast %b [2] : tensor<1000xf32> -> tensor<4x768x1000xf32>
      %s = nn.add %t, %w : tensor<4x768x1000xf32>
      %u = nn.add %s, %c : tensor<4x768x1000xf32>
      %r = nn.relu %u : tensor<4x768x1000xf32>
      nn.yield %r : tensor<4x768x1000xf32>
    }
    %1 = nn.cluster kernel (%a = %image) : (tensor<50000x3xf32>) -> tensor<3x50000xf32> {
      %t = nn.transpose %a [1, 0] : tensor<50000x3xf32> -> tensor<3x50000xf32>
      nn.yield %t : tensor<3x50000xf32>
    }
    %2 = nn.cluster kernel (%a = %half) : (tensor<1000x1000xf16>) -> tensor<1000x1000xf16> {
      %t = nn.transpose %a [1, 0] : tensor<1000x1000xf16> -> tensor<1000x1000xf16>
      nn.yield %t : tensor<1000x1000xf16>
    }
    return %0, %1, %2 : tensor<4x768x1000xf32>, tensor<3x50000xf32>, tensor<1000x1000xf16>
  }
  // None: elements that lie side by side stay so, pieces of 32 are whole lines,
  // and few elements are served by caches.
  // CHECK: #plan.kernel<"k7_transpose", extent = 0, grain = 1, launch = [1000, 256]>
  // CHECK: #plan.kernel<"k8_transpose", extent = 0, grain = 1, launch = [586, 256]>
  // CHECK: #plan.kernel<"k9_transpose", extent = 0, grain = 1, launch = [79, 128]>
  func.func @neighbours(%heads: tensor<4x250x16x64xf32>, %planes: tensor<3x50000xf32>, %few: tensor<100x100xf32>) -> (tensor<4x16x250x64xf32>, tensor<50000x3xf32>, tensor<100x100xf32>) {
    %0 = nn.cluster kernel (%a = %heads) : (tensor<4x250x16x64xf32>) -> tensor<4x16x250x64xf32> {
      %t = nn.transpose %a [0, 2, 1, 3] : tensor<4x250x16x64xf32> -> tensor<4x16x250x64xf32>
      nn.yield %t : tensor<4x16x250x64xf32>
    }
    %1 = nn.cluster kernel (%a = %planes) : (tensor<3x50000xf32>) -> tensor<50000x3xf32> {
      %t = nn.transpose %a [1, 0] : tensor<3x50000xf32> -> tensor<50000x3xf32>
      nn.yield %t : tensor<50000x3xf32>
    }
    %2 = nn.cluster kernel (%a = %few) : (tensor<100x100xf32>) -> tensor<100x100xf32> {
      %t = nn.transpose %a [1, 0] : tensor<100x100xf32> -> tensor<100x100xf32>
      nn.yield %t : tensor<100x100xf32>
    }
    return %0, %1, %2 : tensor<4x16x250x64xf32>, tensor<50000x3xf32>, tensor<100x100xf32>
  }
  // Long columns: a block has 8 of 1000, so that there are many blocks, and all
  // 3 there are. Enough columns need no company.
  // CHECK: #plan.kernel<"k10_reduce", extent = 0, grain = 1, launch = [125, 256]>
  // CHECK: #plan.kernel<"k11_reduce", extent = 0, grain = 1, launch = [1, 256]>
  // CHECK: #plan.kernel<"k12_reduce", extent = 0, grain = 1, launch = [196, 256]>
  func.func @columns(%x: tensor<500x1000xf32>, %y: tensor<5000x3xf32>, %z: tensor<200x50000xf32>) -> (tensor<1000xf32>, tensor<3xf32>, tensor<50000xf32>) {
    %0 = nn.cluster kernel (%a = %x) : (tensor<500x1000xf32>) -> tensor<1000xf32> {
      %s = nn.reduce sum %a [0] : tensor<500x1000xf32> -> tensor<1000xf32>
      nn.yield %s : tensor<1000xf32>
    }
    %1 = nn.cluster kernel (%a = %y) : (tensor<5000x3xf32>) -> tensor<3xf32> {
      %s = nn.reduce sum %a [0] : tensor<5000x3xf32> -> tensor<3xf32>
      nn.yield %s : tensor<3xf32>
    }
    %2 = nn.cluster kernel (%a = %z) : (tensor<200x50000xf32>) -> tensor<50000xf32> {
      %s = nn.reduce sum %a [0] : tensor<200x50000xf32> -> tensor<50000xf32>
      nn.yield %s : tensor<50000xf32>
    }
    return %0, %1, %2 : tensor<1000xf32>, tensor<3xf32>, tensor<50000xf32>
  }
  // CHECK: func.func @k0_add(%{{.*}}: tensor<1000x1000xf32>, %{{.*}}: tensor<1000x1000xf32> {nn.unaligned}, %{{.*}}: tensor<1000x1000xf32>)
  // CHECK-SAME: nn.grid = {row_threads = 1 : i64, threads = 256 : i64, width = 4 : i64}
  // CHECK: func.func @k4_relu
  // CHECK-SAME: nn.grid = {row_threads = 1 : i64, threads = 256 : i64, tile = array<i64: 1, 32, 32>, width = 1 : i64}
  // CHECK: func.func @k5_transpose
  // CHECK-SAME: tile = array<i64: 3, 320>
  // CHECK: func.func @k6_transpose
  // CHECK-SAME: tile = array<i64: 64, 64>
  // CHECK: func.func @k7_transpose
  // CHECK-SAME: nn.grid = {row_threads = 1 : i64, threads = 256 : i64, width = 4 : i64}
  // CHECK: func.func @k10_reduce
  // CHECK-SAME: nn.grid = {columns = 8 : i64, row_threads = 32 : i64, threads = 256 : i64, width = 1 : i64}
  // CHECK: func.func @k11_reduce
  // CHECK-SAME: nn.grid = {columns = 4 : i64, row_threads = 64 : i64, threads = 256 : i64, width = 1 : i64}
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
  // A block for each of six long rows. Elements of short ones are reduced by
  // themselves.
  // CHECK: #plan.kernel<"k1_scan", extent = 0, grain = 1, launch = [6, 256]>
  // CHECK: #plan.kernel<"k2_scan", extent = 0, grain = 1, launch = [5, 128]>
  func.func @scans(%x: tensor<2x1000x3xf32>, %y: tensor<2x100x3xf32>) -> (tensor<2x1000x3xf32>, tensor<2x100x3xf32>) {
    %0 = nn.cluster kernel (%only = %x) : (tensor<2x1000x3xf32>) -> tensor<2x1000x3xf32> {
      %i = nn.scan sum %only dim 1 : tensor<2x1000x3xf32>
      nn.yield %i : tensor<2x1000x3xf32>
    }
    %1 = nn.cluster kernel (%only = %y) : (tensor<2x100x3xf32>) -> tensor<2x100x3xf32> {
      %i = nn.scan sum %only dim 1 : tensor<2x100x3xf32>
      nn.yield %i : tensor<2x100x3xf32>
    }
    return %0, %1 : tensor<2x1000x3xf32>, tensor<2x100x3xf32>
  }
  // A block chooses a few of a long row; where many are wanted, it ranks all.
  // CHECK: #plan.kernel<"k3_top_k", extent = 0, grain = 1, launch = [6, 256]>
  // CHECK: #plan.kernel<"k4_top_k", extent = 0, grain = 1, launch = [6, 256]>
  func.func @choices(%x: tensor<6x1000xf32>) -> (tensor<6x195xi64>, tensor<6x197xi64>) {
    %0 = nn.cluster kernel (%only = %x) : (tensor<6x1000xf32>) -> tensor<6x195xi64> {
      %i = nn.top_k largest %only : tensor<6x1000xf32> -> tensor<6x195xi64>
      nn.yield %i : tensor<6x195xi64>
    }
    %1 = nn.cluster kernel (%only = %x) : (tensor<6x1000xf32>) -> tensor<6x197xi64> {
      %i = nn.top_k largest %only : tensor<6x1000xf32> -> tensor<6x197xi64>
      nn.yield %i : tensor<6x197xi64>
    }
    return %0, %1 : tensor<6x195xi64>, tensor<6x197xi64>
  }
  // A block for each of two sequences.
  // CHECK: #plan.kernel<"k5_recurrent", extent = 0, grain = 1, launch = [2, 256]>
  func.func @recurrent(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>) -> tensor<8x1x2x4xf32> {
    %0 = nn.cluster kernel (%a = %x, %b = %w) : (tensor<7x2x1x4xf32>, tensor<1x4x4xf32>) -> tensor<8x1x2x4xf32> {
      %r = nn.recurrent rnn %a, %b reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
      nn.yield %r : tensor<8x1x2x4xf32>
    }
    return %0 : tensor<8x1x2x4xf32>
  }
  // A block for each row of a sum of many updates; a thread for each element of a short one.
  // CHECK: #plan.kernel<"k6_scatter", extent = 0, grain = 1, in_place = [0, 0], launch = [1250, 256]>
  // CHECK: #plan.kernel<"k7_scatter", extent = 0, grain = 1, in_place = [0, 0], launch = [1, 128]>
  func.func @scatters(%x: tensor<5000x64xf32>, %p: tensor<100xi64>, %u: tensor<100x64xf32>, %y: tensor<16x4xf32>, %v: tensor<100x4xf32>) -> (tensor<5000x64xf32>, tensor<16x4xf32>) {
    %0 = nn.cluster kernel (%a = %x, %b = %p, %c = %u) : (tensor<5000x64xf32>, tensor<100xi64>, tensor<100x64xf32>) -> tensor<5000x64xf32> {
      %r = nn.scatter %a %b %c combine sum : tensor<5000x64xf32>, tensor<100xi64>, tensor<100x64xf32>
      nn.yield %r : tensor<5000x64xf32>
    }
    %1 = nn.cluster kernel (%a = %y, %b = %p, %c = %v) : (tensor<16x4xf32>, tensor<100xi64>, tensor<100x4xf32>) -> tensor<16x4xf32> {
      %r = nn.scatter %a %b %c combine sum : tensor<16x4xf32>, tensor<100xi64>, tensor<100x4xf32>
      nn.yield %r : tensor<16x4xf32>
    }
    return %0, %1 : tensor<5000x64xf32>, tensor<16x4xf32>
  }
  // CHECK: func.func @k3_top_k
  // CHECK-NEXT: nn.top_k
  // CHECK: func.func @k4_top_k
  // CHECK-NOT: nn.top_k
  // CHECK: func.func @k5_recurrent
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

// RUN: partita-opt --lower-clusters %s | FileCheck %s

func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: lowering = #plan.call<dot
  // CHECK-SAME: #plan.post_op<add
  // CHECK-SAME: #plan.post_op<relu
  %0 = nn.cluster (%a0 = %x, %a1 = %w, %a2 = %b) : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %c = nn.broadcast %a2 [1] : tensor<8xf32> -> tensor<4x8xf32>
    %s = nn.add %d, %c : tensor<4x8xf32>
    %r = nn.relu %s : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  // Clusters that compute the same share a kernel.
  // CHECK: lowering = #plan.kernel<"k0_softmax", extent = 4, grain = 4, in_place = [0, 0]>
  %1 = nn.cluster (%a0 = %0) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  // CHECK: lowering = #plan.kernel<"k0_softmax"
  %2 = nn.cluster (%a0 = %1) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  }
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK: module @kernels
// CHECK: func.func @k0_softmax(%{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-NOT: func.func

// Each cluster is lowered by the backend of its own target. Kernels for
// processors and for GPUs are in two modules; names are not used twice.
// RUN: partita-opt --lower-clusters %s | FileCheck %s

// CHECK: #plan.kernel<"k0_tanh", extent = 1
// CHECK: #plan.kernel<"k1_tanh", extent = 0, grain = 1, in_place = [0, 0], launch = [
// CHECK: #plan.kernel<"k1_tanh"
// CHECK: module @kernels {
// CHECK: func.func @k0_tanh
// CHECK: module @kernels_cuda attributes {plan.target = "cuda:sm_90"} {
// CHECK: func.func @k1_tanh
// CHECK-NOT: func.func @k2
dist.mesh @d0 [0]
dist.mesh @d1 [1] kind "cuda"
func.func @main(%x: tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d1> {
  %0 = dist.stage "F0" 0 on @d0 blocks [](%x) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0> {
  ^bb0(%a: tensor<8xf32>):
    %r = nn.cluster kernel (%b = %a) : (tensor<8xf32>) -> tensor<8xf32> {
      %s = nn.tanh %b : tensor<8xf32>
      nn.yield %s : tensor<8xf32>
    }
    dist.yield %r : tensor<8xf32>
  }
  %t = dist.transfer %0 reason "test" : !dist.placed<tensor<8xf32>, @d0> -> !dist.placed<tensor<8xf32>, @d1>
  %1 = dist.stage "F1" 1 on @d1 blocks [](%t) attributes {plan.target = "cuda:sm_90"} : (!dist.placed<tensor<8xf32>, @d1>) -> !dist.placed<tensor<8xf32>, @d1> {
  ^bb0(%a: tensor<8xf32>):
    %r = nn.cluster kernel (%b = %a) : (tensor<8xf32>) -> tensor<8xf32> {
      %s = nn.tanh %b : tensor<8xf32>
      nn.yield %s : tensor<8xf32>
    }
    %q = nn.cluster kernel (%b = %r) : (tensor<8xf32>) -> tensor<8xf32> {
      %s = nn.tanh %b : tensor<8xf32>
      nn.yield %s : tensor<8xf32>
    }
    dist.yield %q : tensor<8xf32>
  }
  return %1 : !dist.placed<tensor<8xf32>, @d1>
}

// RUN: partita-opt --lower-clusters --plan-group-kernels --split-input-file %s | FileCheck %s

module attributes {plan.target = "cuda:sm_90"} {
  dist.mesh @d0 [0] kind "cuda"
  // Three kernels that do not wait for each other are one, behind the call and
  // the view that stand between them. It takes one launch less for each. A
  // fourth needs one of them.
  // CHECK-LABEL: func.func @main
  // CHECK: %[[P:.*]] = nn.cluster call
  // CHECK: %[[G:.*]]:3 = nn.cluster kernel (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %[[P]])
  // CHECK-SAME: attributes {dist.price = array<f64: 3.{{0*}}e+03, 3.{{0*}}e+03>, lowering = #plan.kernel<"g0_relu_x3", extent = 0, grain = 1, in_place = [0, 0, 1, 1, 2, 2], launch = [3, 128]>}
  // CHECK: nn.relu
  // CHECK: nn.tanh
  // CHECK: nn.relu
  // CHECK: nn.yield
  // CHECK: nn.reshape %[[G]]#0
  // CHECK: nn.cluster kernel {{.*}} %[[G]]#1
  // CHECK-SAME: #plan.kernel<"k{{[0-9]}}_neg"
  func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (!dist.placed<tensor<64xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>)
      attributes {dist.devices = array<i64: 0>, dist.device_count = 1 : i64} {
    %r:3 = dist.stage "F0" 0 on @d0 blocks ["B0"] (%x, %y) : (tensor<8x8xf32>, tensor<8x8xf32>) -> (!dist.placed<tensor<64xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>) {
    ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
      %0 = nn.cluster kernel (%i = %a) : (tensor<8x8xf32>) -> tensor<8x8xf32> attributes {dist.price = array<f64: 3000.0, 3000.0>} {
        %s = nn.relu %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      %v = nn.reshape %0 : tensor<8x8xf32> -> tensor<64xf32>
      %1 = nn.cluster kernel (%i = %b) : (tensor<8x8xf32>) -> tensor<8x8xf32> attributes {dist.price = array<f64: 3000.0, 3000.0>} {
        %s = nn.tanh %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      %2 = nn.cluster call (%i = %a, %j = %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
        %s = nn.dot %i, %j batch [] x [] contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      %3 = nn.cluster kernel (%i = %2) : (tensor<8x8xf32>) -> tensor<8x8xf32> attributes {dist.price = array<f64: 3000.0, 3000.0>} {
        %s = nn.relu %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      %4 = nn.cluster kernel (%i = %1) : (tensor<8x8xf32>) -> tensor<8x8xf32> attributes {dist.price = array<f64: 3000.0, 3000.0>} {
        %s = nn.neg %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      dist.yield %v, %3, %4 : tensor<64xf32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %r#0, %r#1, %r#2 : !dist.placed<tensor<64xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>
  }
  // The members' functions belong to the group.
  // CHECK: func.func private @k0_relu
  // CHECK: func.func private @k1_tanh
  // CHECK: func.func @g0_relu_x3(
  // CHECK: call @k0_relu
  // CHECK: call @k1_tanh
  // CHECK: call @k0_relu
}

// -----

module attributes {plan.target = "cuda:sm_90"} {
  dist.mesh @d0 [0] kind "cuda"
  // What both members read is one operand, and neither may write upon it.
  // CHECK-LABEL: func.func @main
  // CHECK: nn.cluster kernel (%{{.*}} = %[[A:.*]], %{{.*}} = %[[B:.*]]) : (tensor<8x8xf32>, tensor<8x8xf32>)
  // CHECK-SAME: #plan.kernel<"g0_add_x2", extent = 0, grain = 1, in_place = [1, 1],
  func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (!dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>)
      attributes {dist.devices = array<i64: 0>, dist.device_count = 1 : i64} {
    %r:2 = dist.stage "F0" 0 on @d0 blocks ["B0"] (%x, %y) : (tensor<8x8xf32>, tensor<8x8xf32>) -> (!dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>) {
    ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
      %0 = nn.cluster kernel (%i = %a) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
        %s = nn.add %i, %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      %1 = nn.cluster kernel (%i = %a, %j = %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
        %s = nn.mul %i, %j : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      dist.yield %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %r#0, %r#1 : !dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>
  }
  // CHECK: func.func @g0_add_x2(%[[A:[a-z0-9]+]]: {{[^,]*}}, %[[B:[a-z0-9]+]]: {{[^,]*}}, %[[X:[a-z0-9]+]]: {{[^,]*}}, %[[Y:[a-z0-9]+]]: {{.*}})
  // CHECK: call @k0_add(%[[A]], %[[X]])
  // CHECK: call @k1_mul(%[[A]], %[[B]], %[[Y]])
}

// -----

// A CPU starts each kernel by itself.
module {
  dist.mesh @d0 [0]
  // CHECK-LABEL: func.func @main
  // CHECK: #plan.kernel<"k0_relu"
  // CHECK: #plan.kernel<"k0_relu"
  // CHECK-NOT: _x2
  func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (!dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>)
      attributes {dist.devices = array<i64: 0>, dist.device_count = 1 : i64} {
    %r:2 = dist.stage "F0" 0 on @d0 blocks ["B0"] (%x, %y) : (tensor<8x8xf32>, tensor<8x8xf32>) -> (!dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>) {
    ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
      %0 = nn.cluster kernel (%i = %a) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
        %s = nn.relu %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      %1 = nn.cluster kernel (%i = %b) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
        %s = nn.relu %i : tensor<8x8xf32>
        nn.yield %s : tensor<8x8xf32>
      }
      dist.yield %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %r#0, %r#1 : !dist.placed<tensor<8x8xf32>, @d0>, !dist.placed<tensor<8x8xf32>, @d0>
  }
}

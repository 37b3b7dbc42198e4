// RUN: partita-opt %s -split-input-file --plan-build --plan-verify-schedule | FileCheck %s
// RUN: partita-opt %s -split-input-file --plan-build="workspace=4096" | FileCheck %s --check-prefix=WORKSPACE

// Two devices: the sent buffer alternates, the receive buffer is one; the load
// program fills the constant region; exp happens in place.
// CHECK: plan.model "net" schedule "fill_drain" micro_batches 3
// CHECK: plan.port input "x" index 4 batch_axis 0 : tensor<16xf32>
// CHECK: plan.port output "y" index 0 batch_axis -1 : tensor<16xf32>
// CHECK: plan.port bound_input "k" index 1 batch_axis -1 : tensor<2xi64>
// CHECK: plan.collection output "s" index 1 optional_sequence length -1
// CHECK: plan.channel @channel0 "value 1" from @device0 to @device1 bytes 64
// CHECK: plan.stage "F0" on @device0 blocks ["A"] {{.*}} parameters 64 activations 128 sent 64 peak 256
module attributes {nn.model = "net", nn.bound_inputs = [{name = "k", port = 1 : i64, type = tensor<2xi64>}],
  nn.collections = [{kind = "optional_sequence", length = -1 : i64, name = "s", output = true, port = 1 : i64}]} {
dist.mesh @d0 [0]
dist.mesh @d1 [1]
nn.weight @w "w" : tensor<16xf32> = dense<1.0> : tensor<16xf32>
// CHECK-LABEL: plan.device @device0 "cpu:0" arena 192 constant 64 parameters 64 packed 0 workspace 0
// CHECK:   %[[X:.*]] = plan.slot arena at [[AT:[0-9]+]] : <tensor<16xf32>>
// CHECK:   %[[W:.*]] = plan.slot weight @w
// CHECK:   %[[K:.*]] = plan.slot constant at 0
// CHECK:   plan.slot arena at [[AT]] : <tensor<16xf32>>
// CHECK:   %[[A:.*]] = plan.slot arena at
// CHECK:   %[[B:.*]] = plan.slot arena at
// CHECK:   plan.load
// CHECK:     plan.dispatch <"k_load", {{.*}}>(%[[W]]) -> (%[[K]])
// CHECK:   plan.unit @F0 stage 0
// CHECK:     plan.dispatch <"k_exp"
// CHECK:     plan.dispatch <"k_add"
// CHECK:   plan.load_input 0 micro_batch 0 to %[[X]]
// CHECK-NEXT: plan.run @F0 micro_batch 0(%[[A]])
// CHECK-NEXT: plan.send @channel0 micro_batch 0 from %[[A]]
// CHECK-NEXT: plan.load_input 0 micro_batch 1
// CHECK-NEXT: plan.run @F0 micro_batch 1(%[[B]])
// CHECK-NEXT: plan.send @channel0 micro_batch 1 from %[[B]]
// CHECK-NEXT: plan.wait @channel0 micro_batch 0
// CHECK-NEXT: plan.load_input 0 micro_batch 2
// CHECK-NEXT: plan.run @F0 micro_batch 2(%[[A]])
// CHECK-NEXT: plan.send @channel0 micro_batch 2 from %[[A]]
// CHECK-NEXT: plan.wait @channel0 micro_batch 1
// CHECK-NEXT: plan.wait @channel0 micro_batch 2
// CHECK-LABEL: plan.device @device1 "cpu:1" arena 64 constant 0
// CHECK:   plan.recv @channel0 micro_batch 0
// CHECK-NEXT: plan.run @F1 micro_batch 0
// CHECK-NEXT: plan.release @channel0 micro_batch 0
// CHECK-NEXT: plan.store_output 0 micro_batch 0
func.func @main(%x: tensor<16xf32> {nn.name = "x", nn.port = 4 : i64, nn.batch_axis = 0 : i64})
    -> (!dist.placed<tensor<16xf32>, @d1> {nn.name = "y"}) attributes {dist.micro_batches = 3 : i64} {
  %0 = dist.stage "F0" 0 on @d0 blocks ["A"] (%x) : (tensor<16xf32>) -> !dist.placed<tensor<4x4xf32>, @d0> {
  ^bb0(%a: tensor<16xf32>):
    %w = nn.parameter @w : tensor<16xf32>
    %k = nn.cluster kernel (%c = %w) : (tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_load", extent = 1, grain = 1>} {
      %s = nn.tanh %c : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    %e = nn.cluster kernel (%c = %a) : (tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_exp", extent = 1, grain = 1, in_place = [0, 0]>} {
      %s = nn.exp %c : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    %r = nn.cluster kernel (%c = %e, %d = %k) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_add", extent = 1, grain = 1>} {
      %s = nn.add %c, %d : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    %v = nn.reshape %r : tensor<16xf32> -> tensor<4x4xf32>
    dist.yield %v : tensor<4x4xf32>
  }
  %t = dist.transfer %0 reason "" : !dist.placed<tensor<4x4xf32>, @d0> -> !dist.placed<tensor<4x4xf32>, @d1>
  %1 = dist.stage "F1" 1 on @d1 blocks ["B"] (%t) : (!dist.placed<tensor<4x4xf32>, @d1>) -> !dist.placed<tensor<16xf32>, @d1> {
  ^bb0(%a: tensor<4x4xf32>):
    %f = nn.reshape %a : tensor<4x4xf32> -> tensor<16xf32>
    %r = nn.cluster kernel (%c = %f) : (tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_exp", extent = 1, grain = 1, in_place = [0, 0]>} {
      %s = nn.exp %c : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    dist.yield %r : tensor<16xf32>
  }
  return %1 : !dist.placed<tensor<16xf32>, @d1>
}
}

// -----

// What a call sums upon comes into the result's bytes by a copy where it is
// needed later.
dist.mesh @d0 [0]
// CHECK-LABEL: plan.device @device0
// CHECK: plan.unit @F0
// CHECK:   plan.copy %[[A:.*]] to %[[R:.*]] label
// CHECK:   plan.call <dot, {{.*}}(%{{.*}}, %{{.*}}, %[[R]]) -> (%[[R]])
// CHECK:   plan.call <dot, {{.*}}(%{{.*}}, %{{.*}}, %[[A]]) -> (%[[S:.*]]) label
func.func @main(%x: tensor<4x4xf32>) -> (!dist.placed<tensor<4x4xf32>, @d0>, !dist.placed<tensor<4x4xf32>, @d0>) {
  %0:2 = dist.stage "F0" 0 on @d0 blocks [] (%x) : (tensor<4x4xf32>) -> (!dist.placed<tensor<4x4xf32>, @d0>, !dist.placed<tensor<4x4xf32>, @d0>) {
  ^bb0(%x0: tensor<4x4xf32>):
    %a = nn.cluster kernel (%c = %x0) : (tensor<4x4xf32>) -> tensor<4x4xf32> attributes {lowering = #plan.kernel<"k_exp", extent = 1, grain = 1>} {
      %s = nn.exp %c : tensor<4x4xf32>
      nn.yield %s : tensor<4x4xf32>
    }
    %r = nn.cluster kernel (%c = %x0, %d = %x0, %e = %a) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> attributes {lowering = #plan.call<dot, operands = [#plan.view<0 shape [4, 4] strides [4, 1]>, #plan.view<1 shape [4, 4] strides [4, 1]>, #plan.view<3 shape [4, 4] strides [4, 1]>], post_ops = [#plan.post_op<sum, view = #plan.view<2 shape [4, 4] strides [4, 1]>>]>} {
      %p = nn.dot %c, %d batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      %s = nn.add %p, %e : tensor<4x4xf32>
      nn.yield %s : tensor<4x4xf32>
    }
    %q = nn.cluster kernel (%c = %x0, %d = %x0, %e = %a) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> attributes {lowering = #plan.call<dot, operands = [#plan.view<0 shape [4, 4] strides [4, 1]>, #plan.view<1 shape [4, 4] strides [4, 1]>, #plan.view<3 shape [4, 4] strides [4, 1]>], post_ops = [#plan.post_op<sum, view = #plan.view<2 shape [4, 4] strides [4, 1]>>]>} {
      %p = nn.dot %c, %d batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      %s = nn.add %p, %e : tensor<4x4xf32>
      nn.yield %s : tensor<4x4xf32>
    }
    dist.yield %r, %q : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %0#0, %0#1 : !dist.placed<tensor<4x4xf32>, @d0>, !dist.placed<tensor<4x4xf32>, @d0>
}

// -----

// One device at a time: a token leads from the last stage back to the first.
dist.mesh @d0 [0]
dist.mesh @d1 [1]
// CHECK: plan.channel @channel1 "(token)" from @device1 to @device0 bytes 0
// CHECK-LABEL: plan.device @device0
// CHECK: plan.send @channel0 micro_batch 0 from
// CHECK-NEXT: plan.recv @channel1 micro_batch 1
// CHECK-LABEL: plan.device @device1
// CHECK: plan.store_output 0 micro_batch 0
// CHECK-NEXT: plan.send @channel1 micro_batch 1
func.func @main(%x: tensor<16xf32>) -> !dist.placed<tensor<16xf32>, @d1>
    attributes {dist.micro_batches = 2 : i64, dist.schedule = "sequential"} {
  %0 = dist.stage "F0" 0 on @d0 blocks [] (%x) : (tensor<16xf32>) -> !dist.placed<tensor<16xf32>, @d0> {
  ^bb0(%a: tensor<16xf32>):
    %r = nn.cluster kernel (%c = %a) : (tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_exp", extent = 1, grain = 1, in_place = [0, 0]>} {
      %s = nn.exp %c : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    dist.yield %r : tensor<16xf32>
  }
  %t = dist.transfer %0 reason "" : !dist.placed<tensor<16xf32>, @d0> -> !dist.placed<tensor<16xf32>, @d1>
  %1 = dist.stage "F1" 1 on @d1 blocks [] (%t) : (!dist.placed<tensor<16xf32>, @d1>) -> !dist.placed<tensor<16xf32>, @d1> {
  ^bb0(%a: tensor<16xf32>):
    %r = nn.cluster kernel (%c = %a) : (tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_exp", extent = 1, grain = 1, in_place = [0, 0]>} {
      %s = nn.exp %c : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    dist.yield %r : tensor<16xf32>
  }
  return %1 : !dist.placed<tensor<16xf32>, @d1>
}

// -----

// A value and its reshape are the same bytes: they are sent once.
dist.mesh @d0 [0]
dist.mesh @d1 [1]
// CHECK: plan.channel @channel0
// CHECK-NOT: plan.channel
// CHECK-LABEL: plan.device @device1
// CHECK: plan.recv @channel0
// CHECK-NOT: plan.recv
func.func @main(%x: tensor<16xf32>) -> !dist.placed<tensor<16xf32>, @d1> {
  %0:2 = dist.stage "F0" 0 on @d0 blocks [] (%x) : (tensor<16xf32>) -> (!dist.placed<tensor<16xf32>, @d0>, !dist.placed<tensor<4x4xf32>, @d0>) {
  ^bb0(%a: tensor<16xf32>):
    %r = nn.cluster kernel (%c = %a) : (tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_exp", extent = 1, grain = 1, in_place = [0, 0]>} {
      %s = nn.exp %c : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    %v = nn.reshape %r : tensor<16xf32> -> tensor<4x4xf32>
    dist.yield %r, %v : tensor<16xf32>, tensor<4x4xf32>
  }
  %t0 = dist.transfer %0#0 reason "" : !dist.placed<tensor<16xf32>, @d0> -> !dist.placed<tensor<16xf32>, @d1>
  %t1 = dist.transfer %0#1 reason "" : !dist.placed<tensor<4x4xf32>, @d0> -> !dist.placed<tensor<4x4xf32>, @d1>
  %1 = dist.stage "F1" 1 on @d1 blocks [] (%t0, %t1) : (!dist.placed<tensor<16xf32>, @d1>, !dist.placed<tensor<4x4xf32>, @d1>) -> !dist.placed<tensor<16xf32>, @d1> {
  ^bb0(%a: tensor<16xf32>, %b: tensor<4x4xf32>):
    %f = nn.reshape %b : tensor<4x4xf32> -> tensor<16xf32>
    %r = nn.cluster kernel (%c = %a, %d = %f) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {lowering = #plan.kernel<"k_add", extent = 1, grain = 1, in_place = [0, 0]>} {
      %s = nn.add %c, %d : tensor<16xf32>
      nn.yield %s : tensor<16xf32>
    }
    dist.yield %r : tensor<16xf32>
  }
  return %1 : !dist.placed<tensor<16xf32>, @d1>
}

// -----

// A library may reorder the weight: 20 rows and 10 columns have room for 32 and
// 64. The bias is read as it lies.
// CHECK: plan.stage "F0" {{.*}} parameters 840 {{.*}} peak 1056976
// CHECK: plan.device @device0 "cpu:0" arena 168 constant 0 parameters 40 packed 8192 workspace 1048576
// WORKSPACE: plan.device @device0 "cpu:0" arena 168 constant 0 parameters 40 packed 8192 workspace 4096
module {
dist.mesh @d0 [0]
nn.weight @w "w" : tensor<20x10xf32> = dense<1.0> : tensor<20x10xf32>
nn.weight @b "b" : tensor<10xf32> = dense<1.0> : tensor<10xf32>
func.func @main(%x: tensor<20xf32>) -> (!dist.placed<tensor<1x10xf32>, @d0>) {
  %0 = dist.stage "F0" 0 on @d0 blocks ["A"] (%x) : (tensor<20xf32>) -> !dist.placed<tensor<1x10xf32>, @d0> {
  ^bb0(%a: tensor<20xf32>):
    %w = nn.parameter @w : tensor<20x10xf32>
    %b = nn.parameter @b : tensor<10xf32>
    %r = nn.cluster kernel (%c = %a, %d = %w, %e = %b) : (tensor<20xf32>, tensor<20x10xf32>, tensor<10xf32>) -> tensor<1x10xf32> attributes {lowering = #plan.call<dot, operands = [#plan.view<0 shape [1, 20] strides [20, 1]>, #plan.view<1 shape [20, 10] strides [10, 1]>, #plan.view<3 shape [1, 10] strides [10, 1]>], bias = #plan.view<2 shape [10] strides [1]>>} {
      %s = nn.reshape %c : tensor<20xf32> -> tensor<1x20xf32>
      %m = nn.dot %s, %d batch [] x [] contract [1] x [0] : tensor<1x20xf32>, tensor<20x10xf32> -> tensor<1x10xf32>
      nn.yield %m : tensor<1x10xf32>
    }
    dist.yield %r : tensor<1x10xf32>
  }
  return %0 : !dist.placed<tensor<1x10xf32>, @d0>
}
}

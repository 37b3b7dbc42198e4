// RUN: partita-opt %s -split-input-file --plan-build | FileCheck %s

// Two devices. What is computed from weights only becomes the load program and
// a constant.
// CHECK: plan.model "net" schedule "fill_drain" micro_batches 3
// CHECK: plan.port input "x" index 4 batch_axis 0 : tensor<16xf32>
// CHECK: plan.port output "y" index 0 batch_axis -1 : tensor<16xf32>
// CHECK: plan.port bound_input "k" index 1 batch_axis -1 : tensor<2xi64>
// CHECK: plan.collection output "s" index 1 optional_sequence length -1
// CHECK: plan.channel @channel0 "value 1" from @program0 to @program1 bytes 64
// CHECK: plan.stage "F0" on @program0 blocks ["A"] {{.*}} parameters 64 activations 128 sent 64 peak 0
// CHECK: plan.device @device0 "cpu:0" executes @program0
// CHECK: plan.device @device1 "cpu:1" executes @program1
module attributes {nn.model = "net", nn.bound_inputs = [{name = "k", port = 1 : i64, type = tensor<2xi64>}],
  nn.collections = [{kind = "optional_sequence", length = -1 : i64, name = "s", output = true, port = 1 : i64}]} {
dist.mesh @d0 [0]
dist.mesh @d1 [1]
nn.weight @w "w" : tensor<16xf32> = dense<1.0> : tensor<16xf32>
// CHECK-LABEL: plan.program @program0 {
// CHECK:   %[[X:.*]] = plan.slot arena : <tensor<16xf32>>
// CHECK:   %[[W:.*]] = plan.slot weight @w
// CHECK:   %[[K:.*]] = plan.slot constant : <tensor<16xf32>>
// CHECK:   %[[E:.*]] = plan.slot arena : <tensor<16xf32>>
// CHECK:   %[[A:.*]] = plan.slot arena : <tensor<16xf32>>
// CHECK:   plan.load
// CHECK:     plan.dispatch <"k_load", {{.*}}>(%[[W]]) -> (%[[K]])
// CHECK:   plan.unit @F0 stage 0
// CHECK:     plan.dispatch <"k_exp", {{.*}}>(%[[X]]) -> (%[[E]])
// CHECK:     plan.dispatch <"k_add", {{.*}}>(%[[E]], %[[K]]) -> (%[[A]])
// CHECK:   plan.load_input 0 micro_batch 0 to %[[X]]
// CHECK-NEXT: plan.run @F0 micro_batch 0{{$}}
// CHECK-NEXT: plan.send @channel0 micro_batch 0 from %[[A]]
// CHECK-NEXT: plan.load_input 0 micro_batch 1
// CHECK-NEXT: plan.run @F0 micro_batch 1{{$}}
// CHECK-NEXT: plan.send @channel0 micro_batch 1 from %[[A]]
// CHECK-NEXT: plan.wait @channel0 micro_batch 0
// CHECK-NEXT: plan.load_input 0 micro_batch 2
// CHECK-NEXT: plan.run @F0 micro_batch 2{{$}}
// CHECK-NEXT: plan.send @channel0 micro_batch 2 from %[[A]]
// CHECK-NEXT: plan.wait @channel0 micro_batch 1
// CHECK-NEXT: plan.wait @channel0 micro_batch 2
// CHECK-LABEL: plan.program @program1 {
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

// One device at a time: a token leads from the last stage back to the first.
dist.mesh @d0 [0]
dist.mesh @d1 [1]
// CHECK: plan.channel @channel1 "(token)" from @program1 to @program0 bytes 0
// CHECK-LABEL: plan.program @program0
// CHECK: plan.send @channel0 micro_batch 0 from
// CHECK-NEXT: plan.recv @channel1 micro_batch 1
// CHECK-LABEL: plan.program @program1
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
// CHECK-LABEL: plan.program @program1
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

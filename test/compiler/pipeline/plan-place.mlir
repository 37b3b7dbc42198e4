// RUN: partita-opt %s -split-input-file --plan-place --plan-verify-schedule | FileCheck %s

// What is sent alternates between two copies; what only the unit uses has one
// place. exp happens in place, and a slot that nothing uses is gone.
module {
nn.weight @w "w" : tensor<16xf32> = dense<1.0> : tensor<16xf32>
plan.port input "x" index 0 batch_axis 0 : tensor<16xf32>
plan.port output "y" index 0 batch_axis 0 : tensor<16xf32>
plan.channel @c0 "a" from @p0 to @p1 bytes 64 reason ""
// CHECK-LABEL: plan.program @p0 arena 192 constant 128
plan.program @p0 {
  // CHECK-NEXT: %[[X:.*]] = plan.slot arena at [[AT:[0-9]+]] : <tensor<16xf32>>
  %x = plan.slot arena : <tensor<16xf32>>
  // CHECK-NEXT: plan.slot arena at [[AT]] : <tensor<16xf32>>
  %e = plan.slot arena : <tensor<16xf32>>
  // CHECK-NEXT: %[[F:.*]] = plan.frame bytes 64 copies [{{[0-9]+}}, {{[0-9]+}}]
  // CHECK-NEXT: %[[A:.*]] = plan.slot frame %[[F]] at 0 : <tensor<16xf32>>
  %a = plan.slot arena : <tensor<16xf32>>
  %unused = plan.slot arena : <tensor<16xf32>>
  // CHECK-NEXT: plan.slot weight @w
  %w = plan.slot weight @w : <tensor<16xf32>>
  // CHECK-NEXT: plan.slot constant at 0
  %k = plan.slot constant : <tensor<16xf32>>
  // CHECK-NEXT: plan.slot constant at 64
  %l = plan.slot constant : <tensor<16xf32>>
  plan.load {
    plan.copy %w to %k label "" : !plan.slot<tensor<16xf32>>, !plan.slot<tensor<16xf32>>
    plan.copy %w to %l label "" : !plan.slot<tensor<16xf32>>, !plan.slot<tensor<16xf32>>
  }
  plan.unit @F0 stage 0 ns 0 {
    plan.dispatch <"k_exp", extent = 1, grain = 1, in_place = [0, 0]>(%x) -> (%e) label "" flops 0 bytes 0
      : (!plan.slot<tensor<16xf32>>) -> !plan.slot<tensor<16xf32>>
    plan.dispatch <"k_add", extent = 1, grain = 1, in_place = [0, 0]>(%e, %k) -> (%a) label "" flops 0 bytes 0
      : (!plan.slot<tensor<16xf32>>, !plan.slot<tensor<16xf32>>) -> !plan.slot<tensor<16xf32>>
  }
  plan.load_input 0 micro_batch 0 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 0
  plan.send @c0 micro_batch 0 from %a : !plan.slot<tensor<16xf32>>
  plan.load_input 0 micro_batch 1 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 1
  // CHECK: plan.send @c0 micro_batch 1 from %[[A]]
  plan.send @c0 micro_batch 1 from %a : !plan.slot<tensor<16xf32>>
  plan.wait @c0 micro_batch 0
  plan.load_input 0 micro_batch 2 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 2
  plan.send @c0 micro_batch 2 from %a : !plan.slot<tensor<16xf32>>
  plan.wait @c0 micro_batch 1
  plan.wait @c0 micro_batch 2
}
// What is received is read at once, and has one place; the result takes it over.
// CHECK-LABEL: plan.program @p1 arena 64 constant 0
plan.program @p1 {
  // CHECK-NEXT: plan.slot arena at 0
  %x = plan.slot arena : <tensor<16xf32>>
  // CHECK-NEXT: plan.slot arena at 0
  %y = plan.slot arena : <tensor<16xf32>>
  plan.unit @F1 stage 1 ns 0 {
    plan.dispatch <"k_exp", extent = 1, grain = 1, in_place = [0, 0]>(%x) -> (%y) label "" flops 0 bytes 0
      : (!plan.slot<tensor<16xf32>>) -> !plan.slot<tensor<16xf32>>
  }
  plan.recv @c0 micro_batch 0 to %x : !plan.slot<tensor<16xf32>>
  plan.run @F1 micro_batch 0
  plan.store_output 0 micro_batch 0 from %y : <tensor<16xf32>>
  plan.recv @c0 micro_batch 1 to %x : !plan.slot<tensor<16xf32>>
  plan.run @F1 micro_batch 1
  plan.store_output 0 micro_batch 1 from %y : <tensor<16xf32>>
  plan.recv @c0 micro_batch 2 to %x : !plan.slot<tensor<16xf32>>
  plan.run @F1 micro_batch 2
  plan.store_output 0 micro_batch 2 from %y : <tensor<16xf32>>
}
}

// -----

// What a call sums upon comes into the result's bytes by a copy where it is
// needed later.
module {
plan.port input "x" index 0 batch_axis 0 : tensor<4x4xf32>
plan.port output "r" index 0 batch_axis 0 : tensor<4x4xf32>
plan.port output "s" index 1 batch_axis 0 : tensor<4x4xf32>
// CHECK-LABEL: plan.program @p0
plan.program @p0 {
  %x = plan.slot arena : <tensor<4x4xf32>>
  %a = plan.slot arena : <tensor<4x4xf32>>
  %r = plan.slot arena : <tensor<4x4xf32>>
  %s = plan.slot arena : <tensor<4x4xf32>>
  // CHECK: plan.unit @F0
  plan.unit @F0 stage 0 ns 0 {
    // CHECK-NEXT: plan.dispatch {{.*}} -> (%[[A:.*]]) label
    plan.dispatch <"k_exp", extent = 1, grain = 1>(%x) -> (%a) label "" flops 0 bytes 0
      : (!plan.slot<tensor<4x4xf32>>) -> !plan.slot<tensor<4x4xf32>>
    // CHECK-NEXT: plan.copy %[[A]] to %[[R:.*]] label
    // CHECK-NEXT: plan.call <dot, {{.*}}(%{{.*}}, %{{.*}}, %[[R]]) -> (%[[R]])
    plan.call <dot, operands = [#plan.view<0 shape [4, 4] strides [4, 1]>, #plan.view<1 shape [4, 4] strides [4, 1]>, #plan.view<3 shape [4, 4] strides [4, 1]>], post_ops = [#plan.post_op<sum, view = #plan.view<2 shape [4, 4] strides [4, 1]>>]>(%x, %x, %a) -> (%r) label "" flops 0 bytes 0
      : (!plan.slot<tensor<4x4xf32>>, !plan.slot<tensor<4x4xf32>>, !plan.slot<tensor<4x4xf32>>) -> !plan.slot<tensor<4x4xf32>>
    // CHECK-NEXT: plan.call <dot, {{.*}}(%{{.*}}, %{{.*}}, %[[A]]) -> (%[[S:.*]]) label
    plan.call <dot, operands = [#plan.view<0 shape [4, 4] strides [4, 1]>, #plan.view<1 shape [4, 4] strides [4, 1]>, #plan.view<3 shape [4, 4] strides [4, 1]>], post_ops = [#plan.post_op<sum, view = #plan.view<2 shape [4, 4] strides [4, 1]>>]>(%x, %x, %a) -> (%s) label "" flops 0 bytes 0
      : (!plan.slot<tensor<4x4xf32>>, !plan.slot<tensor<4x4xf32>>, !plan.slot<tensor<4x4xf32>>) -> !plan.slot<tensor<4x4xf32>>
  }
  plan.load_input 0 micro_batch 0 to %x : <tensor<4x4xf32>>
  plan.run @F0 micro_batch 0
  plan.store_output 0 micro_batch 0 from %r : <tensor<4x4xf32>>
  plan.store_output 1 micro_batch 0 from %s : <tensor<4x4xf32>>
}
}

// -----

// A value that is read three micro-batches later than the next one is made has
// as many copies as are held at the same time. The unit's own value may lie
// with a copy that is free in all runs, but there is none.
module {
plan.port input "x" index 0 batch_axis 0 : tensor<16xf32>
plan.port output "y" index 0 batch_axis 0 : tensor<16xf32>
// CHECK-LABEL: plan.program @p0 arena 256
plan.program @p0 {
  %x = plan.slot arena : <tensor<16xf32>>
  // CHECK: plan.frame bytes 64 copies [{{[0-9]+}}, {{[0-9]+}}, {{[0-9]+}}]
  %y = plan.slot arena : <tensor<16xf32>>
  plan.unit @F0 stage 0 ns 0 {
    plan.dispatch <"k_exp", extent = 1, grain = 1>(%x) -> (%y) label "" flops 0 bytes 0
      : (!plan.slot<tensor<16xf32>>) -> !plan.slot<tensor<16xf32>>
  }
  plan.load_input 0 micro_batch 0 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 0
  plan.load_input 0 micro_batch 1 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 1
  plan.load_input 0 micro_batch 2 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 2
  plan.store_output 0 micro_batch 0 from %y : <tensor<16xf32>>
  plan.load_input 0 micro_batch 3 to %x : <tensor<16xf32>>
  plan.run @F0 micro_batch 3
  plan.store_output 0 micro_batch 1 from %y : <tensor<16xf32>>
  plan.store_output 0 micro_batch 2 from %y : <tensor<16xf32>>
  plan.store_output 0 micro_batch 3 from %y : <tensor<16xf32>>
}
}

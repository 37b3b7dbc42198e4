// RUN: partita-opt %s --plan-reserve-memory | FileCheck %s
// RUN: partita-opt %s --plan-reserve-memory="workspace=4096" | FileCheck %s --check-prefix=WORKSPACE

// A library may reorder the weight: 20 rows and 10 columns have room for 32 and
// 64. The bias is read as it lies.
nn.weight @w "w" : tensor<20x10xf32> = dense<1.0> : tensor<20x10xf32>
nn.weight @b "b" : tensor<10xf32> = dense<1.0> : tensor<10xf32>
plan.port input "x" index 0 batch_axis -1 : tensor<20xf32>
plan.port output "y" index 0 batch_axis -1 : tensor<1x10xf32>
// CHECK: plan.stage "F0" {{.*}} peak 1056976
plan.stage "F0" on @p0 blocks [] flops 0 parameters 840 activations 0 sent 0 peak 0 ns 0
// CHECK: plan.program @p0 arena 168 constant 0 parameters 40 packed 8192 workspace 1048576
// WORKSPACE: plan.program @p0 arena 168 constant 0 parameters 40 packed 8192 workspace 4096
plan.program @p0 arena 168 constant 0 {
  %x = plan.slot arena at 0 : <tensor<20xf32>>
  %y = plan.slot arena at 128 : <tensor<1x10xf32>>
  %w = plan.slot weight @w : <tensor<20x10xf32>>
  %b = plan.slot weight @b : <tensor<10xf32>>
  plan.unit @F0 stage 0 ns 0 {
    plan.call <dot, operands = [#plan.view<0 shape [1, 20] strides [20, 1]>, #plan.view<1 shape [20, 10] strides [10, 1]>, #plan.view<3 shape [1, 10] strides [10, 1]>], post_ops = [#plan.post_op<add, view = #plan.view<2 shape [1, 10] strides [0, 1]>>]>(%x, %w, %b) -> (%y) label "" flops 0 bytes 0
      : (!plan.slot<tensor<20xf32>>, !plan.slot<tensor<20x10xf32>>, !plan.slot<tensor<10xf32>>) -> !plan.slot<tensor<1x10xf32>>
  }
  plan.load_input 0 micro_batch 0 to %x : <tensor<20xf32>>
  plan.run @F0 micro_batch 0
  plan.store_output 0 micro_batch 0 from %y : <tensor<1x10xf32>>
}

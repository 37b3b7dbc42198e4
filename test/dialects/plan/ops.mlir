// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: plan.axis "data" size 1
plan.axis "data" size 1
// CHECK: plan.axis "tensor" size 2
plan.axis "tensor" size 2
// CHECK: nn.weight
nn.weight @w "w" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
// CHECK: plan.model "m" schedule "fill_drain" micro_batches 2 step_ns 100 bubble 2.500000e-01
plan.model "m" schedule "fill_drain" micro_batches 2 step_ns 100 bubble 2.5e-01
// CHECK: plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
plan.port output "y" index 0 batch_axis 0 : tensor<8xf32>
// CHECK: plan.collection input "s" index 1 sequence length 0
plan.collection input "s" index 1 sequence length 0
// CHECK: plan.collection output "o" index 1 optional_tensor length -1
plan.collection output "o" index 1 optional_tensor length -1
// CHECK: plan.stage "F0" on @p0 blocks ["B1"] flops 8 parameters 32 activations 32 sent 32 peak 128 ns 50
plan.stage "F0" on @p0 blocks ["B1"] flops 8 parameters 32 activations 32 sent 32 peak 128 ns 50
// CHECK: plan.channel @c0 "a" from @p0 to @p1 bytes 32 reason "why"
plan.channel @c0 "a" from @p0 to @p1 bytes 32 reason "why"
// CHECK: plan.device @d0 "cpu:0" executes @p0 at [0, 0]{{$}}
plan.device @d0 "cpu:0" executes @p0 at [0, 0]
// CHECK: plan.collective @a0 "a" all_reduce sum f32 in @p1 rows 1 part 8 axes [1] ns 100 reason "why"
plan.collective @a0 "a" all_reduce sum f32 in @p1 rows 1 part 8 axes [1] ns 100 reason "why"
// CHECK: plan.device @d1 "remote-cpu:1" kind "remote-cpu" executes @p1 at [0, 1]
plan.device @d1 "remote-cpu:1" kind "remote-cpu" executes @p1 at [0, 1]
// CHECK: plan.program @p0 arena 192 constant 64
plan.program @p0 arena 192 constant 64 {
  %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
  // CHECK: %[[F:.*]] = plan.frame bytes 32 copies [64, 128]
  %f = plan.frame bytes 32 copies [64, 128]
  // CHECK: %[[A:.*]] = plan.slot frame %[[F]] at 0 : <tensor<8xf32>>
  %a = plan.slot frame %f at 0 : !plan.slot<tensor<8xf32>>
  // CHECK: plan.slot constant at 0
  %k = plan.slot constant at 0 : !plan.slot<tensor<8xf32>>
  // CHECK: plan.slot weight @w
  %w = plan.slot weight @w : !plan.slot<tensor<8xf32>>
  // CHECK: plan.slot state @w
  %old = plan.slot state @w : !plan.slot<tensor<8xf32>>
  // CHECK: plan.slot state renewed @w
  %new = plan.slot state renewed @w : !plan.slot<tensor<8xf32>>
  %s = plan.slot constant at 0 : !plan.slot<tensor<4xf32>>
  // CHECK: plan.load
  plan.load {
    plan.copy %w to %k label "w" : !plan.slot<tensor<8xf32>>, !plan.slot<tensor<8xf32>>
    // CHECK: plan.slice %{{.*}} to %{{.*}} rows 2 part 2 axes [1] label "w"
    plan.slice %w to %s rows 2 part 2 axes [1] label "w" : !plan.slot<tensor<8xf32>>, !plan.slot<tensor<4xf32>>
  }
  // CHECK: plan.unit @F0 stage 0 ns 50
  plan.unit @F0 stage 0 ns 50 {
    // CHECK: plan.dispatch <"k0", extent = 8, grain = 8>({{.*}}) -> (%[[A]]) label "add" flops 8 bytes 96
    plan.dispatch #plan.kernel<"k0", extent = 8, grain = 8>(%x, %k) -> (%a) label "add" flops 8 bytes 96
      : (!plan.slot<tensor<8xf32>>, !plan.slot<tensor<8xf32>>) -> !plan.slot<tensor<8xf32>>
  }
  // CHECK: plan.load_input 0 micro_batch 0 to
  plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
  // CHECK: plan.run @F0 micro_batch 0{{$}}
  plan.run @F0 micro_batch 0
  // CHECK: plan.send @c0 micro_batch 0 from
  plan.send @c0 micro_batch 0 from %a : !plan.slot<tensor<8xf32>>
  // CHECK: plan.wait @c0 micro_batch 0
  plan.wait @c0 micro_batch 0
}
// CHECK: plan.check "Gather" node "embed" operand "indices" tensor "ids" shape [4, 5] rows 4 from [-9] to [8]
plan.check "Gather" node "embed" operand "indices" tensor "ids" shape [4, 5] rows 4 from [-9] to [8]
// Without places yet.
// CHECK: plan.program @p1 {
plan.program @p1 {
  // CHECK: plan.slot arena : <tensor<8xf32>>
  %a = plan.slot arena : !plan.slot<tensor<8xf32>>
  // CHECK: %[[S:.*]] = plan.slot arena span sum lanes 2 : <tensor<8xf32>>
  %sum = plan.slot arena span sum lanes 2 : !plan.slot<tensor<8xf32>>
  // CHECK: plan.slot arena span sum of %[[S]] : !plan.slot<tensor<8xf32>> lane 1 : <tensor<8xf32>>
  %lane = plan.slot arena span sum of %sum : !plan.slot<tensor<8xf32>> lane 1 : !plan.slot<tensor<8xf32>>
  // CHECK: %[[G:.*]] = plan.slot arena span sum : <tensor<8xf32>>
  %g = plan.slot arena span sum : !plan.slot<tensor<8xf32>>
  // CHECK: plan.slot arena span sum joins %[[G]] : !plan.slot<tensor<8xf32>> : <tensor<8xf32>>
  %joined = plan.slot arena span sum joins %g : !plan.slot<tensor<8xf32>> : !plan.slot<tensor<8xf32>>
  // CHECK: plan.recv @c0 micro_batch 0 to
  plan.recv @c0 micro_batch 0 to %a : !plan.slot<tensor<8xf32>>
  // CHECK: plan.release @c0 micro_batch 0
  plan.release @c0 micro_batch 0
  // CHECK: plan.start @a0 micro_batch 0 from %{{.*}} : <tensor<8xf32>>
  plan.start @a0 micro_batch 0 from %a : !plan.slot<tensor<8xf32>>
  // CHECK: plan.finish @a0 micro_batch 0 to %{{.*}} : <tensor<8xf32>>
  plan.finish @a0 micro_batch 0 to %a : !plan.slot<tensor<8xf32>>
  // CHECK: plan.store_output 0 micro_batch 0 from
  plan.store_output 0 micro_batch 0 from %a : !plan.slot<tensor<8xf32>>
  %c = plan.slot arena : !plan.slot<tensor<4x2xi64>>
  // CHECK: plan.examine 0 micro_batch 0 from %{{.*}} : <tensor<4x2xi64>>
  plan.examine 0 micro_batch 0 from %c : !plan.slot<tensor<4x2xi64>>
}

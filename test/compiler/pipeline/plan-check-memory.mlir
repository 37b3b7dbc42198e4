// RUN: partita-opt %s -split-input-file --plan-check-memory="advice=smaller" -verify-diagnostics

// 4096 bytes of weights, an arena of 192: the step at which most of it is in use, and what is alive then. The second micro-batch of what is sent
// lies in a copy of its own; what is sent is in use until its wait.
// expected-error @+4 {{device cpu:0 needs 4.19 KiB (4288 bytes), but has room for 4.00 KiB: weights and constants 4.00 KiB, arena 192 B, the library's scratch 0 B}}
// expected-note @+3 {{its arena is fullest, with 192 B in use, at 'exp' in unit F0, micro-batch 1; the largest tensors then: 'exp' 64 bytes, 'x' 64 bytes, 'exp' 64 bytes}}
// expected-note @+2 {{its largest weights: 'w' 4096 bytes}}
// expected-note @+1 {{smaller}}
module {
  nn.weight @w "w" : tensor<1024xf32> = dense<1.0> : tensor<1024xf32>
  plan.model "m" schedule "fill_drain" micro_batches 2 step_ns 0 bubble 0.0 {dist.memory = 4096 : i64}
  plan.port input "x" index 0 batch_axis -1 : tensor<16xf32>
  plan.channel @c "exp" from @p0 to @p1 bytes 64 reason ""
  plan.device @d0 "cpu:0" executes @p0
  plan.device @d1 "cpu:1" executes @p1
  plan.program @p0 arena 192 constant 0 parameters 4096 packed 0 workspace 0 {
    %x = plan.slot arena at 0 : <tensor<16xf32>>
    %f = plan.frame bytes 64 copies [64, 128]
    %a = plan.slot frame %f at 0 : <tensor<16xf32>>
    %w = plan.slot weight @w : <tensor<1024xf32>>
    plan.unit @F0 stage 0 ns 0 {
      plan.dispatch <"k", extent = 1, grain = 1>(%x, %w) -> (%a) label "exp" flops 0 bytes 0
        : (!plan.slot<tensor<16xf32>>, !plan.slot<tensor<1024xf32>>) -> !plan.slot<tensor<16xf32>>
    }
    plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<16xf32>>
    plan.run @F0 micro_batch 0
    plan.send @c micro_batch 0 from %a : !plan.slot<tensor<16xf32>>
    plan.load_input 0 micro_batch 1 to %x : !plan.slot<tensor<16xf32>>
    plan.run @F0 micro_batch 1
    plan.send @c micro_batch 1 from %a : !plan.slot<tensor<16xf32>>
    plan.wait @c micro_batch 0
    plan.wait @c micro_batch 1
  }
  plan.program @p1 arena 0 constant 0 parameters 0 packed 0 workspace 0 {
  }
}

// -----

// Within the memory; and nobody said how much there is.
module {
  plan.model "m" schedule "fill_drain" micro_batches 1 step_ns 0 bubble 0.0 {dist.memory = 192 : i64}
  plan.program @p0 arena 128 constant 0 parameters 64 packed 0 workspace 0 {
  }
}

// -----

module {
  plan.model "m" schedule "fill_drain" micro_batches 1 step_ns 0 bubble 0.0
  plan.program @p0 arena 128 constant 0 parameters 64 packed 0 workspace 0 {
  }
}

// RUN: partita-opt %s -split-input-file --plan-verify-schedule -verify-diagnostics

// Each device receives before it sends: the smallest cycle of waits.
// expected-error @+1 {{the schedule deadlocks: these actions wait for one another}}
module {
  plan.channel @c0 "a" from @p0 to @p1 bytes 0 reason ""
  plan.channel @c1 "b" from @p1 to @p0 bytes 0 reason ""
  plan.program @p0 arena 0 constant 0 {
    plan.recv @c1 micro_batch 0
    plan.send @c0 micro_batch 0
    plan.wait @c0 micro_batch 0
  }
  plan.program @p1 arena 0 constant 0 {
    plan.recv @c0 micro_batch 0
    plan.send @c1 micro_batch 0
    plan.wait @c1 micro_batch 0
  }
}

// -----

// expected-error @+1 {{nobody sends it}}
module {
  plan.channel @c0 "a" from @p0 to @p1 bytes 0 reason ""
  plan.program @p0 arena 0 constant 0 {
  }
  plan.program @p1 arena 0 constant 0 {
    plan.recv @c0 micro_batch 0
  }
}

// -----

// expected-error @+1 {{nobody receives it}}
module {
  plan.channel @c0 "a" from @p0 to @p1 bytes 0 reason ""
  plan.program @p0 arena 0 constant 0 {
    plan.send @c0 micro_batch 0
    plan.wait @c0 micro_batch 0
  }
  plan.program @p1 arena 0 constant 0 {
  }
}

// -----

// A buffer is written again while it is being sent.
// expected-error @+1 {{the plan is wrong: p0: action 'input x', micro-batch 1 writes bytes 0 to 32 while send of channel 0, micro-batch 0 (a) of them is outstanding}}
module {
  plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
  plan.channel @c0 "a" from @p0 to @p1 bytes 32 reason ""
  plan.program @p0 arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
    plan.send @c0 micro_batch 0 from %x : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 1 to %x : !plan.slot<tensor<8xf32>>
    plan.wait @c0 micro_batch 0
  }
  plan.program @p1 arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.recv @c0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
  }
}

// -----

// One instruction of a unit overwrites what a later one reads.
// expected-error @+1 {{has overwritten with another value}}
module {
  plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
  plan.program @p0 arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    %y = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.unit @F0 stage 0 ns 0 {
      plan.dispatch #plan.kernel<"k", extent = 1, grain = 1>(%x) -> (%y) label "first" flops 0 bytes 0
        : (!plan.slot<tensor<8xf32>>) -> !plan.slot<tensor<8xf32>>
      plan.dispatch #plan.kernel<"k", extent = 1, grain = 1>(%x) -> (%y) label "second" flops 0 bytes 0
        : (!plan.slot<tensor<8xf32>>) -> !plan.slot<tensor<8xf32>>
    }
    plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
    plan.run @F0 micro_batch 0
  }
}

// -----

// expected-error @+1 {{before anything is written there}}
module {
  plan.port output "y" index 0 batch_axis 0 : tensor<8xf32>
  plan.program @p0 arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.store_output 0 micro_batch 0 from %x : !plan.slot<tensor<8xf32>>
  }
}

// -----

// On micro-batch 2 the frame has the copy of micro-batch 0 again, which nobody
// has stored yet.
// expected-error @+1 {{the plan is wrong: p0: action 'output y', micro-batch 0 reads bytes 0 to 32, which action 'input x', micro-batch 2 has overwritten with another value}}
module {
  plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
  plan.port output "y" index 0 batch_axis 0 : tensor<8xf32>
  plan.program @p0 arena 128 constant 0 {
    %f = plan.frame bytes 32 copies [0, 64]
    %x = plan.slot frame %f at 0 : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 1 to %x : !plan.slot<tensor<8xf32>>
    plan.store_output 0 micro_batch 1 from %x : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 2 to %x : !plan.slot<tensor<8xf32>>
    plan.store_output 0 micro_batch 0 from %x : !plan.slot<tensor<8xf32>>
    plan.store_output 0 micro_batch 2 from %x : !plan.slot<tensor<8xf32>>
  }
}

// -----

// A constant of the load program, in all micro-batches: right.
module {
  nn.weight @w "w" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
  plan.port output "y" index 0 batch_axis 0 : tensor<8xf32>
  plan.program @p0 arena 128 constant 64 {
    %w = plan.slot weight @w : !plan.slot<tensor<8xf32>>
    %k = plan.slot constant at 0 : !plan.slot<tensor<8xf32>>
    %f = plan.frame bytes 32 copies [0, 64]
    %y = plan.slot frame %f at 0 : !plan.slot<tensor<8xf32>>
    plan.load {
      plan.copy %w to %k label "w" : !plan.slot<tensor<8xf32>>, !plan.slot<tensor<8xf32>>
    }
    plan.unit @F0 stage 0 ns 0 {
      plan.copy %k to %y label "y" : !plan.slot<tensor<8xf32>>, !plan.slot<tensor<8xf32>>
    }
    plan.run @F0 micro_batch 0
    plan.run @F0 micro_batch 1
    plan.store_output 0 micro_batch 0 from %y : !plan.slot<tensor<8xf32>>
    plan.store_output 0 micro_batch 1 from %y : !plan.slot<tensor<8xf32>>
  }
}

// -----

module {
  plan.program @p0 {
    // expected-error @+1 {{has no place: run --plan-place before}}
    %x = plan.slot arena : !plan.slot<tensor<8xf32>>
  }
}

// RUN: partita-opt %s -split-input-file --plan-verify-schedule -verify-diagnostics

// Each device receives before it sends: the smallest cycle of waits.
// expected-error @+1 {{the schedule deadlocks: these steps wait for one another}}
module {
  plan.channel @c0 "a" from @d0 to @d1 bytes 0 reason ""
  plan.channel @c1 "b" from @d1 to @d0 bytes 0 reason ""
  plan.device @d0 "cpu:0" arena 0 constant 0 {
    plan.recv @c1 micro_batch 0
    plan.send @c0 micro_batch 0
    plan.wait @c0 micro_batch 0
  }
  plan.device @d1 "cpu:1" arena 0 constant 0 {
    plan.recv @c0 micro_batch 0
    plan.send @c1 micro_batch 0
    plan.wait @c1 micro_batch 0
  }
}

// -----

// expected-error @+1 {{nobody sends it}}
module {
  plan.channel @c0 "a" from @d0 to @d1 bytes 0 reason ""
  plan.device @d0 "cpu:0" arena 0 constant 0 {
  }
  plan.device @d1 "cpu:1" arena 0 constant 0 {
    plan.recv @c0 micro_batch 0
  }
}

// -----

// expected-error @+1 {{nobody receives it}}
module {
  plan.channel @c0 "a" from @d0 to @d1 bytes 0 reason ""
  plan.device @d0 "cpu:0" arena 0 constant 0 {
    plan.send @c0 micro_batch 0
    plan.wait @c0 micro_batch 0
  }
  plan.device @d1 "cpu:1" arena 0 constant 0 {
  }
}

// -----

// A buffer is written again while it is being sent.
// expected-error @+1 {{the plan is wrong}}
module {
  plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
  plan.channel @c0 "a" from @d0 to @d1 bytes 32 reason ""
  plan.device @d0 "cpu:0" arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
    plan.send @c0 micro_batch 0 from %x : !plan.slot<tensor<8xf32>>
    plan.load_input 0 micro_batch 1 to %x : !plan.slot<tensor<8xf32>>
    plan.wait @c0 micro_batch 0
  }
  plan.device @d1 "cpu:1" arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.recv @c0 micro_batch 0 to %x : !plan.slot<tensor<8xf32>>
  }
}

// -----

// One instruction of a unit overwrites what a later one reads.
// expected-error @+1 {{has overwritten with another value}}
module {
  plan.port input "x" index 0 batch_axis 0 : tensor<8xf32>
  plan.device @d0 "cpu:0" arena 64 constant 0 {
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
  plan.device @d0 "cpu:0" arena 64 constant 0 {
    %x = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
    plan.store_output 0 micro_batch 0 from %x : !plan.slot<tensor<8xf32>>
  }
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

// model C1
// expected-error @+1 {{(C1) needs at least 1 micro-batch, has 0}}
plan.model "m" schedule "fill_drain" micro_batches 0 step_ns 0 bubble 0.0

// -----

// port C1
// expected-error @+1 {{(C1) batch axis 1 is not a dimension of 'tensor<8xf32>'}}
plan.port input "x" index 0 batch_axis 1 : tensor<8xf32>

// -----

// collection C1
// expected-error @+1 {{(C1) is neither an input nor an output}}
plan.collection bound_input "x" index 0 sequence length 1

// -----

// collection C2
// expected-error @+1 {{(C2) has the length -1}}
plan.collection input "x" index 0 sequence length -1

// -----

// collection C2
// expected-error @+1 {{(C2) has the length 2}}
plan.collection output "x" index 0 optional_tensor length 2

// -----

// channel C1
plan.program @p0 arena 0 constant 0 {
}
// expected-error @+1 {{(C1) @p1 is not a program}}
plan.channel @c0 "a" from @p0 to @p1 bytes 0 reason ""

// -----

// channel C1
plan.program @p0 arena 0 constant 0 {
}
// expected-error @+1 {{(C1) leads from @p0 to the same program}}
plan.channel @c0 "a" from @p0 to @p0 bytes 0 reason ""

// -----

// channel C2
plan.program @p0 arena 0 constant 0 {
}
plan.program @p1 arena 0 constant 0 {
}
// expected-error @+1 {{(C2) has -1 bytes}}
plan.channel @c0 "a" from @p0 to @p1 bytes -1 reason ""

// -----

plan.program @p0 arena 64 constant 0 {
  // slot C1
  // expected-error @+1 {{(C1) offset 4 is not a multiple of 64}}
  %a = plan.slot arena at 4 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  // slot C1
  // expected-error @+1 {{(C1) in weight names no weight}}
  %a = plan.slot weight : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 64 {
  // slot C3
  // expected-error @+1 {{(C3) in constant has the span step}}
  %a = plan.slot constant span step at 0 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 64 {
  // slot C4
  // expected-error @+1 {{(C4) in arena has cuts}}
  %a = plan.slot arena at 0 cuts [#plan.cut<dim = 0, blocks = 1, axes = [0]>] : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 64 {
  // slot C4
  // expected-error @+1 {{(C4) in arena is renewed}}
  %a = plan.slot arena renewed at 0 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %f = plan.frame bytes 64 copies [0, 64]
  // slot C3
  // expected-error @+1 {{(C3) has 3 lanes in a frame of 2 copies}}
  %a = plan.slot frame %f span sum at 0 lanes 3 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %f = plan.frame bytes 64 copies [0, 64]
  // slot C5
  // expected-error @+1 {{(C5) has lanes, or is one, and is no sum}}
  %a = plan.slot frame %f at 0 lanes 2 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  // slot C5
  // expected-error @+1 {{(C5) has -1 lanes}}
  %a = plan.slot arena span sum at 0 lanes -1 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %f = plan.frame bytes 64 copies [0, 64]
  %a = plan.slot frame %f span sum at 0 lanes 2 : !plan.slot<tensor<1xf32>>
  // slot C5
  // expected-error @+1 {{(C5) is lane 2 of a sum of 2 lanes}}
  %b = plan.slot arena span sum at 64 of %a : !plan.slot<tensor<1xf32>> lane 2 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %f = plan.frame bytes 64 copies [0, 64]
  %a = plan.slot frame %f span sum at 0 lanes 2 : !plan.slot<tensor<1xf32>>
  // slot C5
  // expected-error @+1 {{(C5) lies elsewhere than lane 1 of its sum}}
  %b = plan.slot arena span sum at 0 of %a : !plan.slot<tensor<1xf32>> lane 1 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %f = plan.frame bytes 64 copies [0, 64]
  %a = plan.slot frame %f span sum at 0 lanes 2 : !plan.slot<tensor<1xf32>>
  // slot C5
  // expected-error @+1 {{(C5) lies elsewhere than in the arena, or has another type than the sum of which it is a lane}}
  %b = plan.slot arena span sum at 64 of %a : !plan.slot<tensor<1xf32>> lane 1 : !plan.slot<tensor<2xf32>>
}

// -----

plan.program @p0 arena 128 constant 64 {
  %a = plan.slot arena span sum at 0 : !plan.slot<tensor<1xf32>>
  // slot C6
  // expected-error @+1 {{(C6) joins slots, and lies in constant, or has lanes or is one}}
  %b = plan.slot constant at 0 joins %a : !plan.slot<tensor<1xf32>> : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %a = plan.slot arena span sum at 0 : !plan.slot<tensor<1xf32>>
  // slot C6
  // expected-error @+1 {{(C6) joins what has another span or element type, lies elsewhere than in the arena, or has lanes}}
  %b = plan.slot arena span step at 0 joins %a : !plan.slot<tensor<1xf32>> : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 128 constant 0 {
  %a = plan.slot arena span sum at 64 : !plan.slot<tensor<1xf32>>
  // slot C6
  // expected-error @+1 {{(C6) joins what lies elsewhere}}
  %b = plan.slot arena span sum at 0 joins %a : !plan.slot<tensor<1xf32>> : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  // slot C1
  // expected-error @+1 {{(C1) in weight has an offset}}
  %a = plan.slot weight at 0 @w : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  // slot C1
  // expected-error @+1 {{(C1) in arena names a weight}}
  %a = plan.slot arena at 0 @w : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  // slot C1
  // expected-error @+1 {{(C1) in frame names no frame}}
  %a = plan.slot frame at 0 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  %f = plan.frame bytes 64 copies [0]
  // slot C2
  // expected-error @+1 {{(C2) ends at byte 68 of frame, which has 64 bytes}}
  %a = plan.slot frame %f at 64 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  // frame C1
  // expected-error @+1 {{(C1) has no copy}}
  %f = plan.frame bytes 64 copies []
}

// -----

plan.program @p0 arena 256 constant 0 {
  // frame C1
  // expected-error @+1 {{(C1) copy at 32 is not at a multiple of 64}}
  %f = plan.frame bytes 64 copies [128, 32]
}

// -----

plan.program @p0 arena 128 constant 0 {
  // frame C2
  // expected-error @+1 {{(C2) copy ends at byte 160 of the arena, which has 128 bytes}}
  %f = plan.frame bytes 96 copies [0, 64]
}

// -----

// device C1
// expected-error @+1 {{(C1) @p0 is not a program}}
plan.device @d0 "cpu:0" executes @p0

// -----

plan.program @p0 arena 64 constant 0 {
  // slot C2
  // expected-error @+1 {{(C2) ends at byte 68 of arena, which has 64 bytes}}
  %a = plan.slot arena at 64 : !plan.slot<tensor<1xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  // unit C1
  // expected-error @+1 {{(C1) holds 'nn.constant', which is not an instruction}}
  plan.unit @F0 stage 0 ns 0 {
    %c = nn.constant dense<1.0> : tensor<1xf32>
  }
}

// -----

plan.program @p0 arena 64 constant 0 {
  // load C1
  // expected-error @+1 {{(C1) holds 'nn.constant', which is not an instruction}}
  plan.load {
    %c = nn.constant dense<1.0> : tensor<1xf32>
  }
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  plan.unit @F0 stage 0 ns 0 {
    // call C1
    // expected-error @+1 {{names none of its 2 operands}}
    plan.call #plan.call<dot, operands = [#plan.view<2 shape [4] strides [1]>]>(%a) -> (%a) label "" flops 0 bytes 0
      : (!plan.slot<tensor<4xf32>>) -> !plan.slot<tensor<4xf32>>
  }
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  plan.unit @F0 stage 0 ns 0 {
    // call C2
    // expected-error @+1 {{leaves its slot of type 'tensor<4xf32>'}}
    plan.call #plan.call<dot, operands = [#plan.view<0 shape [4] strides [2]>]>(%a) -> (%a) label "" flops 0 bytes 0
      : (!plan.slot<tensor<4xf32>>) -> !plan.slot<tensor<4xf32>>
  }
}

// -----

plan.program @p0 arena 128 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  %b = plan.slot arena at 64 : !plan.slot<tensor<2xf32>>
  plan.unit @F0 stage 0 ns 0 {
    // copy C1
    // expected-error @+1 {{(C1) copies 16 bytes into a slot of 8 bytes}}
    plan.copy %a to %b label "" : !plan.slot<tensor<4xf32>>, !plan.slot<tensor<2xf32>>
  }
}

// -----

plan.program @p0 arena 0 constant 0 {
  // run C1
  // expected-error @+1 {{(C1) @F0 is not a unit of its program}}
  plan.run @F0 micro_batch 0
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // send C1
  // expected-error @+1 {{(C1) @c0 is not a channel}}
  plan.send @c0 micro_batch 0 from %a : !plan.slot<tensor<4xf32>>
}

// -----

plan.channel @c0 "a" from @p0 to @p1 bytes 8 reason ""
plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // send C2
  // expected-error @+1 {{(C2) has a slot of 16 bytes, channel @c0 carries 8}}
  plan.send @c0 micro_batch 0 from %a : !plan.slot<tensor<4xf32>>
}
plan.program @p1 arena 0 constant 0 {
}

// -----

plan.channel @c0 "a" from @p0 to @p1 bytes 16 reason ""
plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // recv C1
  // expected-error @+1 {{(C1) stands in @p0, but the target of channel @c0 is @p1}}
  plan.recv @c0 micro_batch 0 to %a : !plan.slot<tensor<4xf32>>
}
plan.program @p1 arena 0 constant 0 {
}

// -----

plan.channel @c0 "a" from @p0 to @p1 bytes 16 reason ""
plan.program @p0 arena 0 constant 0 {
}
plan.program @p1 arena 64 constant 0 {
  // recv C2
  // expected-error @+1 {{(C2) has a slot of 0 bytes, channel @c0 carries 16}}
  plan.recv @c0 micro_batch 0
}

// -----

plan.channel @c0 "a" from @p0 to @p1 bytes 16 reason ""
plan.program @p0 arena 0 constant 0 {
}
plan.program @p1 arena 64 constant 0 {
  // wait C1
  // expected-error @+1 {{(C1) stands in @p1, but the source of channel @c0 is @p0}}
  plan.wait @c0 micro_batch 0
}

// -----

plan.channel @c0 "a" from @p0 to @p1 bytes 16 reason ""
plan.program @p0 arena 0 constant 0 {
  // release C1
  // expected-error @+1 {{(C1) stands in @p0, but the target of channel @c0 is @p1}}
  plan.release @c0 micro_batch 0
}
plan.program @p1 arena 64 constant 0 {
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // load_input C1
  // expected-error @+1 {{(C1) names input 0 of 0}}
  plan.load_input 0 micro_batch 0 to %a : !plan.slot<tensor<4xf32>>
}

// -----

plan.port output "y" index 0 batch_axis 0 : tensor<2xf32>
plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // store_output C1
  // expected-error @+1 {{(C1) has a slot of 16 bytes, port 'y' has 8}}
  plan.store_output 0 micro_batch 0 from %a : !plan.slot<tensor<4xf32>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // recv C1
  // expected-error @+1 {{(C1) @c0 is not a channel}}
  plan.recv @c0 micro_batch 0 to %a : !plan.slot<tensor<4xf32>>
}

// -----

plan.program @p0 arena 0 constant 0 {
  // wait C1
  // expected-error @+1 {{(C1) @c0 is not a channel}}
  plan.wait @c0 micro_batch 0
}

// -----

// axis C1
// expected-error @+1 {{(C1) has the size 0}}
plan.axis "data" size 0

// -----

plan.axis "data" size 2
plan.program @p0 {
}
// axis C2
// expected-error @+1 {{(C2) stands behind another op than an axis}}
plan.axis "tensor" size 2

// -----

plan.axis "data" size 2
plan.program @p0 arena 0 constant 0 {
}
// device C2
// expected-error @+1 {{(C2) has the coordinate 2 on the axis 'data'}}
plan.device @d0 "cpu:0" executes @p0 at [2]

// -----

plan.axis "data" size 2
plan.program @p0 arena 0 constant 0 {
}
// device C2
// expected-error @+1 {{(C2) has 0 coordinates for 1 axes}}
plan.device @d0 "cpu:0" executes @p0

// -----

plan.axis "tensor" size 2
// collective C1
// expected-error @+1 {{(C1) @p0 is not a program}}
plan.collective @a0 "a" all_reduce sum f32 in @p0 rows 1 part 8 axes [0] ns 0 reason ""

// -----

plan.axis "tensor" size 2
plan.program @p0 arena 0 constant 0 {
}
// collective C2
// expected-error @+1 {{(C2) is along axes that the module does not have}}
plan.collective @a0 "a" all_reduce sum f32 in @p0 rows 1 part 8 axes [1] ns 0 reason ""

// -----

plan.axis "data" size 2
plan.program @p0 arena 0 constant 0 {
}
// collective C2
// expected-error @+1 {{(C2) is along the axis 'data'}}
plan.collective @a0 "a" all_reduce sum f32 in @p0 rows 1 part 8 axes [0] ns 0 reason ""

// -----

plan.axis "tensor" size 2
plan.program @p0 arena 0 constant 0 {
}
// collective C3
// expected-error @+1 {{(C3) has -1 rows of 8 elements}}
plan.collective @a0 "a" all_reduce sum f32 in @p0 rows -1 part 8 axes [0] ns 0 reason ""

// -----

plan.axis "tensor" size 2
plan.program @p0 arena 0 constant 0 {
}
// collective C4
// expected-error @+1 {{(C4) has the root 2 in a group of 2}}
plan.collective @a0 "a" broadcast sum f32 in @p0 rows 1 part 8 axes [0] ns 0 reason "" {root = 2 : i64}

// -----

plan.axis "tensor" size 2
plan.program @p0 arena 128 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
  %b = plan.slot arena at 64 : !plan.slot<tensor<8xf32>>
  plan.unit @F0 stage 0 ns 0 {
    // slice C1
    // expected-error @+1 {{(C1) makes 2 rows of 2 elements, 'tensor<8xf32>', of 'tensor<8xf32>' over 2 devices}}
    plan.slice %a to %b rows 2 part 2 axes [0] label "w" : !plan.slot<tensor<8xf32>>, !plan.slot<tensor<8xf32>>
  }
}

// -----

plan.axis "tensor" size 2
plan.program @p0 arena 128 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
  %b = plan.slot arena at 64 : !plan.slot<tensor<8xf32>>
  plan.unit @F0 stage 0 ns 0 {
    // slice C1: the product is beyond 64 bits; its low ones are 8
    // expected-error @+1 {{(C1) makes 2305843009213693953 rows of 8 elements}}
    plan.slice %a to %b rows 2305843009213693953 part 8 axes [0] label "w" : !plan.slot<tensor<8xf32>>, !plan.slot<tensor<8xf32>>
  }
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // start C1
  // expected-error @+1 {{(C1) @a0 is not a collective}}
  plan.start @a0 micro_batch 0 from %a : !plan.slot<tensor<4xf32>>
}

// -----

plan.axis "tensor" size 2
plan.collective @a0 "a" all_gather sum f32 in @p0 rows 1 part 4 axes [0] ns 0 reason ""
plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
  // start C2
  // expected-error @+1 {{(C2) has a slot of 'tensor<8xf32>', collective @a0 has 4 elements of 'f32' there}}
  plan.start @a0 micro_batch 0 from %a : !plan.slot<tensor<8xf32>>
}

// -----

plan.axis "tensor" size 2
plan.collective @a0 "a" all_gather sum f32 in @p0 rows 1 part 4 axes [0] ns 0 reason ""
plan.program @p0 arena 0 constant 0 {
}
plan.program @p1 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<8xf32>>
  // finish C1
  // expected-error @+1 {{(C1) stands in @p1, but collective @a0 is of @p0}}
  plan.finish @a0 micro_batch 0 to %a : !plan.slot<tensor<8xf32>>
}

// -----

plan.axis "tensor" size 2
plan.collective @a0 "a" all_gather sum f32 in @p0 rows 1 part 4 axes [0] ns 0 reason ""
plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xf32>>
  // finish C2
  // expected-error @+1 {{(C2) has a slot of 'tensor<4xf32>', collective @a0 has 8 elements of 'f32' there}}
  plan.finish @a0 micro_batch 0 to %a : !plan.slot<tensor<4xf32>>
}

// -----

// check C1
// expected-error @+1 {{(C1) has 3 rows of 20 indices}}
plan.check "Gather" node "n" operand "indices" tensor "i" shape [4, 5] rows 3 from [-9] to [8]

// -----

// check C2
// expected-error @+1 {{(C2) has 2 and 2 bounds}}
plan.check "Gather" node "n" operand "indices" tensor "i" shape [4, 5] rows 4 from [-9, -9] to [8, 8]

// -----

plan.check "Gather" node "n" operand "indices" tensor "i" shape [4, 5] rows 4 from [-9] to [8]
plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4xi64>>
  // examine C1
  // expected-error @+1 {{(C1) has a slot of 'tensor<4xi64>', check 0 has 4 rows}}
  plan.examine 0 micro_batch 0 from %a : !plan.slot<tensor<4xi64>>
}

// -----

plan.program @p0 arena 64 constant 0 {
  %a = plan.slot arena at 0 : !plan.slot<tensor<4x2xi64>>
  // examine C1
  // expected-error @+1 {{(C1) names check 0 of 0}}
  plan.examine 0 micro_batch 0 from %a : !plan.slot<tensor<4x2xi64>>
}

// -----

// expected-error @+1 {{a call of kind pool_max has no such details: #plan.combine<sum>}}
module attributes {test.call = #plan.call<pool_max, details = #plan.combine<sum>>} {}

// -----

// expected-error @+1 {{a call of kind scan has no such details}}
module attributes {test.call = #plan.call<scan>} {}

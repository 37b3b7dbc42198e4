// RUN: partita-opt %s -split-input-file -verify-diagnostics

// mesh C1
// expected-error @+1 {{(C1) names device 0 twice}}
dist.mesh @d0 [0, 0]

// -----

// mesh C1
// expected-error @+1 {{(C1) has no devices}}
dist.mesh @d0 []

// -----

// stage C1
func.func @main(%x: tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0> {
  // expected-error @+1 {{(C1) @d0 is not a mesh}}
  %0 = dist.stage "F0" 0 on @d0 blocks [] (%x) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0> {
  ^bb0(%a: tensor<8xf32>):
    dist.yield %a : tensor<8xf32>
  }
  return %0 : !dist.placed<tensor<8xf32>, @d0>
}

// -----

// stage C2
dist.mesh @d0 [0]
dist.mesh @d1 [1]
func.func @main(%x: !dist.placed<tensor<8xf32>, @d0>) -> !dist.placed<tensor<8xf32>, @d1> {
  // expected-error @+1 {{(C2) stands on @d1, but uses or makes '!dist.placed<tensor<8xf32>, @d0>'}}
  %0 = dist.stage "F1" 1 on @d1 blocks [] (%x) : (!dist.placed<tensor<8xf32>, @d0>) -> !dist.placed<tensor<8xf32>, @d1> {
  ^bb0(%a: tensor<8xf32>):
    dist.yield %a : tensor<8xf32>
  }
  return %0 : !dist.placed<tensor<8xf32>, @d1>
}

// -----

// stage C3
dist.mesh @d0 [0]
func.func @main(%x: tensor<8xf32>) -> !dist.placed<tensor<4xf32>, @d0> {
  // expected-error @+1 {{(C3) argument 0 has type 'tensor<4xf32>', its operand 'tensor<8xf32>'}}
  %0 = dist.stage "F0" 0 on @d0 blocks [] (%x) : (tensor<8xf32>) -> !dist.placed<tensor<4xf32>, @d0> {
  ^bb0(%a: tensor<4xf32>):
    dist.yield %a : tensor<4xf32>
  }
  return %0 : !dist.placed<tensor<4xf32>, @d0>
}

// -----

// stage C4
dist.mesh @d0 [0]
func.func @main(%x: tensor<8xf32>) -> !dist.placed<tensor<4xf32>, @d0> {
  // expected-error @+1 {{(C4) result 0 has type '!dist.placed<tensor<4xf32>, @d0>', yielded is 'tensor<8xf32>'}}
  %0 = dist.stage "F0" 0 on @d0 blocks [] (%x) : (tensor<8xf32>) -> !dist.placed<tensor<4xf32>, @d0> {
  ^bb0(%a: tensor<8xf32>):
    dist.yield %a : tensor<8xf32>
  }
  return %0 : !dist.placed<tensor<4xf32>, @d0>
}

// -----

// transfer C1
dist.mesh @d0 [0]
dist.mesh @d1 [1]
func.func @main(%x: !dist.placed<tensor<8xf32>, @d0>) {
  // expected-error @+1 {{(C1) makes 'tensor<4xf32>' of 'tensor<8xf32>'}}
  %0 = dist.transfer %x reason "" : !dist.placed<tensor<8xf32>, @d0> -> !dist.placed<tensor<4xf32>, @d1>
  return
}

// -----

// transfer C2
dist.mesh @d0 [0]
func.func @main(%x: !dist.placed<tensor<8xf32>, @d0>) {
  // expected-error @+1 {{(C2) leads from @d0 to the same mesh}}
  %0 = dist.transfer %x reason "" : !dist.placed<tensor<8xf32>, @d0> -> !dist.placed<tensor<8xf32>, @d0>
  return
}

// -----

// mesh C2
// expected-error @+1 {{(C2) has 2 devices, its axes 1}}
dist.mesh @d0 [0, 1]

// -----

// mesh C2
// expected-error @+1 {{(C2) has the axis #dist.axis<"data" = 2> twice}}
dist.mesh @d0 [0, 1, 2, 3] axes [#dist.axis<"data" = 2>, #dist.axis<"data" = 2>]

// -----

// mesh C2
// expected-error @+1 {{(C2) has the axis #dist.axis<"data" = 0>}}
dist.mesh @d0 [0] axes [#dist.axis<"data" = 0>]

// -----

func.func @main(%x: tensor<8x16xf32>) {
  // reduce_scatter C1
  // expected-error @+1 {{(C1) 'tensor<3x16xf32>' is no part of 'tensor<8x16xf32>' along dimension 0 in 1 blocks}}
  %0 = dist.reduce_scatter sum %x dim 0 blocks 1 axes ["tensor"] reason "" : tensor<8x16xf32> -> tensor<3x16xf32>
  return
}

// -----

func.func @main(%x: tensor<8x16xf32>) {
  // all_gather C1
  // expected-error @+1 {{(C1) 'tensor<8x16xf32>' is no part of 'tensor<8x32xf32>' along dimension 2}}
  %0 = dist.all_gather %x dim 2 blocks 1 axes ["tensor"] reason "" : tensor<8x16xf32> -> tensor<8x32xf32>
  return
}

// -----

func.func @main(%x: tensor<8x16xf32>) {
  // all_to_all C1
  // expected-error @+1 {{(C1) 'tensor<8x8xf32>' needs one dimension more than 'tensor<8x16xf32>'}}
  %0 = dist.all_to_all %x dim 1 blocks 1 axes ["tensor"] reason "" : tensor<8x16xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @main(%x: tensor<8x16xf32>) {
  // all_to_all C1
  // expected-error @+1 {{(C1) 'tensor<8x8xf32>' is no part of 'tensor<8x16xf32>' along dimension 1 in 3 blocks}}
  %0 = dist.all_to_all %x dim 1 blocks 3 axes ["tensor"] reason "" : tensor<8x16xf32> -> tensor<2x8x8xf32>
  return
}

// -----

func.func @main(%x: tensor<8x16xf32>) {
  // all_to_all C1
  // expected-error @+1 {{(C1) has parts for 4 devices in 'tensor<8x16xf32>', and of 2 in 'tensor<2x8x4xf32>'}}
  %0 = dist.all_to_all %x dim 1 blocks 1 axes ["tensor"] reason "" : tensor<8x16xf32> -> tensor<2x8x4xf32>
  return
}

// -----

func.func @main(%x: tensor<8x16xf32>) {
  // shard C1
  // expected-error @+1 {{(C1) 'tensor<8x8xf32>' is no part of 'tensor<8x16xf32>' along dimension 1 in 3 blocks}}
  %0 = dist.shard %x dim 1 blocks 3 axes ["tensor"] : tensor<8x16xf32> -> tensor<8x8xf32>
  return
}

// -----

// expected-error @+1 {{blocks and alignment must be at least 1}}
#sharding = #dist.sharding<[{"tensor" blocks 0}]>

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

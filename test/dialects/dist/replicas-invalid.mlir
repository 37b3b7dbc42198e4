// RUN: partita-opt %s -split-input-file -verify-diagnostics

// replicate: replicas
func.func @main(%x: tensor<6x6xf32>) -> tensor<6x6xf32> {
  // expected-error @+1 {{attribute 'replicas' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = dist.replicate 0 (%x) dims [0] results [0] : (tensor<6x6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<6x6xf32>
}

// -----

// replicate C1
func.func @main(%x: tensor<6x6xf32>) -> tensor<6x6xf32> {
  // expected-error @+1 {{(C1) has 2 regions for 3 replicas}}
  %0 = dist.replicate 3 (%x) dims [0] results [0] : (tensor<6x6xf32>) -> tensor<6x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }, {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<6x6xf32>
}

// -----

// replicate C2
func.func @main(%x: tensor<5x6xf32>) -> tensor<5x6xf32> {
  // expected-error @+1 {{(C2) 2 replicas have no equal parts of operand 0, 'tensor<5x6xf32>', along dimension 0}}
  %0 = dist.replicate 2 (%x) dims [0] results [0] : (tensor<5x6xf32>) -> tensor<5x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<5x6xf32>
}

// -----

// replicate C2
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{(C2) has 1 results and 2 dimensions for them}}
  %0 = dist.replicate 2 (%x) dims [0] results [0, 0] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// replicate C3
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{(C3) replica 0 has argument 0 of type 'tensor<4x6xf32>', its part is 'tensor<2x6xf32>'}}
  %0 = dist.replicate 2 (%x) dims [0] results [-1] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<4x6xf32>):
    dist.yield %a : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// replicate C4
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // expected-error @+1 {{(C4) replica 0 yields result 0 as 'tensor<2x6xf32>', its part is 'tensor<4x6xf32>'}}
  %0 = dist.replicate 2 (%x) dims [0] results [-1] : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<2x6xf32>):
    dist.yield %a : tensor<2x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// replica.all_reduce C1
func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{(C1) is a mean of 'i32': cast it to floats before}}
  %0 = dist.replica.all_reduce mean %x : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// replica.all_reduce C1
func.func @main(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{(C1) is the sum of booleans: they have only max (or) and min (and)}}
  %0 = dist.replica.all_reduce sum %x : tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

// replica.all_gather C1
func.func @main(%x: tensor<4x3xf32>) -> tensor<8x6xf32> {
  // expected-error @+1 {{(C1) 'tensor<4x3xf32>' is no equal part of 'tensor<8x6xf32>' along dimension 0}}
  %0 = dist.replica.all_gather %x dim 0 : tensor<4x3xf32> -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// replica.broadcast: root
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'root' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = dist.replica.broadcast %x root -1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// replica.all_to_all C1
func.func @main(%x: tensor<4x3xf32>) -> tensor<12x1xf32> {
  // expected-error @+1 {{(C1) cannot split dimension 1 of 'tensor<4x3xf32>' for 2 replicas}}
  %0 = dist.replica.all_to_all %x split 1 concat 0 replicas 2 : tensor<4x3xf32> -> tensor<12x1xf32>
  return %0 : tensor<12x1xf32>
}

// -----

// replica.all_to_all C2
func.func @main(%x: tensor<4x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{(C2) makes 'tensor<2x6xf32>', not 'tensor<2x3xf32>'}}
  %0 = dist.replica.all_to_all %x split 0 concat 1 replicas 2 : tensor<4x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// replica.shard C1
func.func @main(%x: tensor<4x3xf32>) -> tensor<3x3xf32> {
  // expected-error @+1 {{(C1) 'tensor<3x3xf32>' is no equal part of 'tensor<4x3xf32>' along dimension 0}}
  %0 = dist.replica.shard %x dim 0 : tensor<4x3xf32> -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

// broadcast: root
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'root' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = dist.broadcast %x root -1 axes ["replica"] reason "why" : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// RUN: partita-opt --emit-kernel-loops --split-input-file -verify-diagnostics %s | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// Tiles of 40 elements, of which the last one is cut short; the operand and the
// result have the same bytes.
// CHECK: func.func @tiles(%[[X:.*]]: memref<100xf32>, %[[R:.*]]: memref<100xf32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK: scf.for %[[TILE:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[START:.*]] = arith.muli %[[TILE]], %c40
// CHECK: %[[LEFT:.*]] = arith.subi %c100{{.*}}, %[[START]]
// CHECK: arith.minui %[[LEFT]], %c40
// CHECK: vector.load %[[X]]
// CHECK: vector.store %{{.*}}, %[[R]]
func.func @tiles(%x: tensor<100xf32>, %r: tensor<100xf32>) -> tensor<100xf32>
    attributes {nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 40>, grain = 1 : i64, in_place = array<i64: 0, 0>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<100xf32>) outs(%r : tensor<100xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %in, %in : f32
    linalg.yield %1 : f32
  } -> tensor<100xf32>
  return %0 : tensor<100xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// Without a pair that shares bytes, nothing overlaps.
// CHECK: func.func @apart(%{{.*}}: memref<100xf32> {llvm.noalias}, %{{.*}}: memref<100xf32> {llvm.noalias}, %{{.*}}: index, %{{.*}}: index)
func.func @apart(%x: tensor<100xf32>, %r: tensor<100xf32>) -> tensor<100xf32>
    attributes {nn.schedule = {rows = [array<i64: 0>], tiles = array<i64: 100>, grain = 1 : i64, in_place = array<i64>}} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<100xf32>) outs(%r : tensor<100xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<100xf32>
  return %0 : tensor<100xf32>
}

// -----

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// What is a reference says so on the module, and has no vectors.
// CHECK: module attributes {nn.reference}
// CHECK: func.func @reference
// CHECK-NOT: vector
// CHECK: arith.addf %{{.*}} : f32
func.func @reference(%x: tensor<8x100xf32>, %r: tensor<8xf32>) -> tensor<8xf32>
    attributes {nn.reference, nn.schedule = {rows = [array<i64: 0, -1>], tiles = array<i64: 1>, grain = 1 : i64, in_place = array<i64>}} {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x100xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.addf %out, %in : f32
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{schedule}}
func.func @undecided(%x: tensor<1xf32>, %r: tensor<1xf32>) -> tensor<1xf32> {
  return %x : tensor<1xf32>
}

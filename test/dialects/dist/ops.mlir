// RUN: partita-opt %s | partita-opt | FileCheck %s

// CHECK: dist.mesh @d0 [0]
dist.mesh @d0 [0]
// CHECK: dist.mesh @d1 [1, 2]
dist.mesh @d1 [1, 2]

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d1> {
  // CHECK: dist.stage "F0" 0 on @d0 blocks ["B1"](%{{.*}}) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0>
  %0 = dist.stage "F0" 0 on @d0 blocks ["B1"] (%x) : (tensor<8xf32>) -> !dist.placed<tensor<8xf32>, @d0> {
  ^bb0(%a: tensor<8xf32>):
    %r = nn.relu %a : tensor<8xf32>
    dist.yield %r : tensor<8xf32>
  }
  // CHECK: dist.transfer %{{.*}} reason "F1 reads it" : <tensor<8xf32>, @d0> -> <tensor<8xf32>, @d1>
  %1 = dist.transfer %0 reason "F1 reads it" : !dist.placed<tensor<8xf32>, @d0> -> !dist.placed<tensor<8xf32>, @d1>
  return %1 : !dist.placed<tensor<8xf32>, @d1>
}

// RUN: partita-opt %s --nn-scatter-upon-sums | FileCheck %s

// CHECK-LABEL: func.func @table
// CHECK: %[[A:.*]] = nn.accumulator 0
// CHECK: %[[S:.*]] = nn.scatter %[[A]] %{{.*}} %{{.*}} combine sum
// CHECK: nn.sum_micro_batches %[[S]] in %[[A]]
func.func @table(%p: tensor<2xi64>, %u: tensor<2x4xf32>) -> tensor<9x4xf32> {
  %z = nn.constant dense<0.0> : tensor<9x4xf32>
  %g = nn.scatter %z %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
  %a = nn.accumulator 0 : tensor<9x4xf32>
  %n = nn.add %a, %g : tensor<9x4xf32>
  %s = nn.sum_micro_batches %n in %a : tensor<9x4xf32> : tensor<9x4xf32>
  return %s : tensor<9x4xf32>
}

// On the other side of the sum.
// CHECK-LABEL: func.func @other_side
// CHECK: %[[A:.*]] = nn.accumulator 0
// CHECK: nn.scatter %[[A]]
// CHECK-NOT: nn.add
func.func @other_side(%p: tensor<2xi64>, %u: tensor<2x4xf32>) -> tensor<9x4xf32> {
  %z = nn.constant dense<0.0> : tensor<9x4xf32>
  %g = nn.scatter %z %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
  %a = nn.accumulator 0 : tensor<9x4xf32>
  %n = nn.add %g, %a : tensor<9x4xf32>
  %s = nn.sum_micro_batches %n in %a : tensor<9x4xf32> : tensor<9x4xf32>
  return %s : tensor<9x4xf32>
}

// Somebody else reads it; it stands upon something else; rows replace others; there is no accumulator.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: nn.add
func.func @others(%p: tensor<2xi64>, %u: tensor<2x4xf32>, %x: tensor<9x4xf32>)
    -> (tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>) {
  %z = nn.constant dense<0.0> : tensor<9x4xf32>
  %one = nn.constant dense<1.0> : tensor<9x4xf32>
  %a = nn.accumulator 0 : tensor<9x4xf32>
  %g0 = nn.scatter %z %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
  %n0 = nn.add %a, %g0 : tensor<9x4xf32>
  %g1 = nn.scatter %one %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
  %n1 = nn.add %a, %g1 : tensor<9x4xf32>
  %g2 = nn.scatter %z %p %u : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
  %n2 = nn.add %a, %g2 : tensor<9x4xf32>
  %g3 = nn.scatter %z %p %u combine sum : tensor<9x4xf32>, tensor<2xi64>, tensor<2x4xf32>
  %n3 = nn.add %x, %g3 : tensor<9x4xf32>
  return %g0, %n0, %n1, %n2, %n3 : tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>
}

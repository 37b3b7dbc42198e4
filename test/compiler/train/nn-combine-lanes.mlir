// RUN: partita-opt --nn-combine-lanes %s | FileCheck %s

// Lane c and lane c + 2 of 4 are added up first, so that each of two replicas
// has half of the tree. The additions are one kernel.
// CHECK-LABEL: func.func @four
// CHECK: %[[L0:.*]] = nn.sum_micro_batches %[[N:.*]] in %[[A:.*]] : tensor<4xf32> lane 0 {nn.gradient_of = @w} : tensor<4xf32>
// CHECK: %[[L2:.*]] = nn.sum_micro_batches %[[N]] in %[[A]] : tensor<4xf32> lane 2 : tensor<4xf32>
// CHECK: %[[S0:.*]] = nn.add %[[L0]], %[[L2]] {nn.cluster = #nn.cluster<4, kernel>}
// CHECK: %[[L1:.*]] = nn.sum_micro_batches %[[N]] in %[[A]] : tensor<4xf32> lane 1 : tensor<4xf32>
// CHECK: %[[L3:.*]] = nn.sum_micro_batches %[[N]] in %[[A]] : tensor<4xf32> lane 3 : tensor<4xf32>
// CHECK: %[[S1:.*]] = nn.add %[[L1]], %[[L3]] {nn.cluster = #nn.cluster<4, kernel>}
// CHECK: %[[S:.*]] = nn.add %[[S0]], %[[S1]] {nn.cluster = #nn.cluster<4, kernel>}
// CHECK: nn.neg %[[S]]
func.func @four(%g: tensor<4xf32>) -> tensor<4xf32> {
  %a = nn.accumulator 0 lanes 4 : tensor<4xf32>
  %n = nn.add %a, %g {nn.cluster = #nn.cluster<3, kernel>} : tensor<4xf32>
  %s = nn.sum_micro_batches %n in %a : tensor<4xf32> {nn.gradient_of = @w} : tensor<4xf32>
  %r = nn.neg %s : tensor<4xf32>
  return %r : tensor<4xf32>
}

// Of lanes that there are not nothing is added.
// CHECK-LABEL: func.func @three
// CHECK: %[[L0:.*]] = nn.sum_micro_batches {{.*}} lane 0 :
// CHECK: %[[L2:.*]] = nn.sum_micro_batches {{.*}} lane 2 :
// CHECK: %[[S0:.*]] = nn.add %[[L0]], %[[L2]]
// CHECK: %[[L1:.*]] = nn.sum_micro_batches {{.*}} lane 1 :
// CHECK: %[[S:.*]] = nn.add %[[S0]], %[[L1]]
// CHECK: return %[[S]]
func.func @three(%g: tensor<4xf32>) -> tensor<4xf32> {
  %a = nn.accumulator 0 lanes 3 : tensor<4xf32>
  %n = nn.add %a, %g : tensor<4xf32>
  %s = nn.sum_micro_batches %n in %a : tensor<4xf32> : tensor<4xf32>
  return %s : tensor<4xf32>
}

// CHECK-LABEL: func.func @one
// CHECK: %[[S:.*]] = nn.sum_micro_batches
// CHECK-NOT: lane
// CHECK: return %[[S]]
func.func @one(%g: tensor<4xf32>) -> tensor<4xf32> {
  %a = nn.accumulator 0 : tensor<4xf32>
  %n = nn.add %a, %g : tensor<4xf32>
  %s = nn.sum_micro_batches %n in %a : tensor<4xf32> : tensor<4xf32>
  return %s : tensor<4xf32>
}

// RUN: partita-opt --nn-form-accumulators --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @several
// CHECK: %[[A:.*]] = nn.accumulator 0 : tensor<4xf32>
// CHECK: %[[N:.*]] = nn.add %[[A]], %{{.*}} : tensor<4xf32>
// CHECK: nn.sum_micro_batches %[[N]] in %[[A]] : tensor<4xf32> : tensor<4xf32>
// CHECK: nn.accumulator 1
func.func @several(%g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {dist.micro_batches = 3 : i64} {
  %s = nn.sum_micro_batches %g : tensor<4xf32>
  %n = nn.neg %g : tensor<4xf32>
  %t = nn.sum_micro_batches %n : tensor<4xf32>
  return %s, %t : tensor<4xf32>, tensor<4xf32>
}

// -----

// Of one micro-batch the sum is the value.
// CHECK-LABEL: func.func @one
// CHECK-NOT: nn.accumulator
func.func @one(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.micro_batches = 1 : i64} {
  %s = nn.sum_micro_batches %g : tensor<4xf32>
  return %s : tensor<4xf32>
}

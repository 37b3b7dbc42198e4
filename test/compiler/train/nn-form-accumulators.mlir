// RUN: partita-opt --nn-form-accumulators --split-input-file --verify-diagnostics %s | FileCheck %s

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

// What no input has a part in is the same in each micro-batch.
// CHECK-LABEL: func.func @same
// CHECK-NOT: nn.accumulator
// CHECK: %[[N:.*]] = nn.constant dense<3.000000e+00> : tensor<4xf32>
// CHECK: %[[M:.*]] = nn.mul %{{.*}}, %[[N]] : tensor<4xf32>
// CHECK: nn.sum_micro_batches %[[M]] : tensor<4xf32>
nn.weight state @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32>
func.func @same() -> tensor<4xf32> attributes {dist.micro_batches = 3 : i64} {
  %w = nn.parameter state @w : tensor<4xf32>
  %g = nn.neg %w : tensor<4xf32>
  %s = nn.sum_micro_batches %g : tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Of one micro-batch the sum is the value.
// CHECK-LABEL: func.func @one
// CHECK-NOT: nn.accumulator
func.func @one(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.micro_batches = 1 : i64} {
  %s = nn.sum_micro_batches %g : tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

// Micro-batches are dealt out to replicas.
// CHECK-LABEL: func.func @replicas
// CHECK-SAME: dist.micro_batches = 3 : i64
module attributes {dist.full_steps} {
  func.func @replicas(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.micro_batches = 6 : i64} {
    %s = nn.sum_micro_batches %g : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

// expected-error @below {{the micro-batches of a step (--micro-batches 5) cannot be dealt out to 2 replicas (--data-parallel) in equal parts: give a multiple of 2, e.g. 6}}
module attributes {dist.full_steps} {
  func.func @uneven(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.micro_batches = 5 : i64} {
    %s = nn.sum_micro_batches %g : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

// What is reproducible adds micro-batches up in 8 lanes for all replicas together.
// expected-remark @below {{`reproducible` keeps each sum over micro-batches in 4 parts: this takes 1 MiB more for all devices of a replica together, and 3 more additions of each in a step}}
module attributes {dist.full_steps} {
  // CHECK-LABEL: func.func @lanes
  // CHECK: %[[A:.*]] = nn.accumulator 0 lanes 4 : tensor<4xf32>
  // CHECK: nn.sum_micro_batches %{{.*}} in %[[A]] : tensor<4xf32> : tensor<4xf32>
  func.func @lanes(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.reproducible, dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.micro_batches = 16 : i64} {
    %s = nn.sum_micro_batches %g : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

module attributes {dist.full_steps} {
  // There are no more lanes than micro-batches. One alone is added to 0, too: -0 becomes 0.
  // CHECK-LABEL: func.func @alone
  // CHECK: %[[A:.*]] = nn.accumulator 0 : tensor<4xf32>
  // CHECK: nn.add %[[A]]
  func.func @alone(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.reproducible, dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.micro_batches = 2 : i64} {
    %s = nn.sum_micro_batches %g : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

// expected-error @below {{`reproducible` adds gradients up in a tree that 1, 2, 4 and 8 replicas have in common, not 3 (--data-parallel): take one of these, or leave `reproducible` out}}
module attributes {dist.full_steps} {
  func.func @three(%g: tensor<4xf32>) -> tensor<4xf32> attributes {dist.reproducible, dist.axes = [#dist.axis<"data" = 3>, #dist.axis<"stage" = 0>], dist.micro_batches = 6 : i64} {
    %s = nn.sum_micro_batches %g : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// RUN: partita-opt %s --nn-mixed-precision --canonicalize --split-input-file | FileCheck %s
// RUN: partita-opt %s --nn-mixed-precision=type=f16 --split-input-file | FileCheck %s --check-prefix=F16
// RUN: not partita-opt %s --nn-mixed-precision=type=f8 --split-input-file 2>&1 | FileCheck %s --check-prefix=F8
// F8: error: type=f8: products of halves are bf16 or f16

// Bias and ReLU are computed with the product, and what two products share is rounded once. A transpose between them moves halves. What is no product is f32.
// CHECK-LABEL: func.func @products
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>
// CHECK: %[[HX:.*]] = nn.cast %[[X]] : tensor<8x4xf32> -> tensor<8x4xbf16>
// CHECK: %[[W:.*]] = nn.parameter state @w : tensor<4x2xf32>
// CHECK: %[[HW:.*]] = nn.cast %[[W]] : tensor<4x2xf32> -> tensor<4x2xbf16>
// CHECK: %[[B:.*]] = nn.cast %{{.*}} : tensor<2xf32> -> tensor<2xbf16>
// CHECK: %[[P:.*]] = nn.dot %[[HX]], %[[HW]] {{.*}} -> tensor<8x2xbf16>
// CHECK: %[[S:.*]] = nn.broadcast %[[B]] [1] : tensor<2xbf16> -> tensor<8x2xbf16>
// CHECK: %[[A:.*]] = nn.add %[[P]], %[[S]] : tensor<8x2xbf16>
// CHECK: %[[R:.*]] = nn.relu %[[A]] : tensor<8x2xbf16>
// CHECK: %[[T:.*]] = nn.transpose %[[R]] [1, 0] : tensor<8x2xbf16> -> tensor<2x8xbf16>
// CHECK: %[[Q:.*]] = nn.dot %[[T]], %[[R]] {{.*}} -> tensor<2x2xbf16>
// CHECK: %[[Q32:.*]] = nn.cast %[[Q]] : tensor<2x2xbf16> -> tensor<2x2xf32>
// CHECK: nn.exp %[[Q32]] : tensor<2x2xf32>
// CHECK: %[[C:.*]] = nn.dot %{{.*}} -> tensor<8x2xbf16>
// CHECK: %[[Y:.*]] = nn.cast %[[C]] : tensor<8x2xbf16> -> tensor<8x2xf32>
// CHECK: return %[[Y]] : tensor<8x2xf32>
// F16-LABEL: func.func @products
// F16-NOT: nn.transpose {{.*}}f32
// F16: nn.dot {{.*}} : tensor<8x4xf16>, tensor<4x2xf16> -> tensor<8x2xf16>
module attributes {plan.target = "cuda:sm_90"} {
  nn.weight state @w "w" : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
  nn.weight @b "b" : tensor<2xf32> = dense<1.0> : tensor<2xf32>
  func.func @products(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
    %w = nn.parameter state @w : tensor<4x2xf32>
    %b = nn.parameter @b : tensor<2xf32>
    %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = nn.broadcast %b [1] : tensor<2xf32> -> tensor<8x2xf32>
    %2 = nn.add %0, %1 : tensor<8x2xf32>
    %3 = nn.relu %2 : tensor<8x2xf32>
    %t = nn.transpose %3 [1, 0] : tensor<8x2xf32> -> tensor<2x8xf32>
    %4 = nn.dot %t, %3 batch [] x [] contract [1] x [0] : tensor<2x8xf32>, tensor<8x2xf32> -> tensor<2x2xf32>
    %5 = nn.exp %4 : tensor<2x2xf32>
    %6 = nn.dot %3, %5 batch [] x [] contract [1] x [0] : tensor<8x2xf32>, tensor<2x2xf32> -> tensor<8x2xf32>
    return %6 : tensor<8x2xf32>
  }
}

// -----

// What stays f32: a product of weights, of f64, and of integers. A sum that has another use is not added before its rounding, nor is a vector that changes with the samples.
// CHECK-LABEL: func.func @others
// CHECK-DAG: nn.dot {{.*}} : tensor<4x2xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
// CHECK-DAG: nn.dot {{.*}} : tensor<8x4xf64>, tensor<4x2xf64> -> tensor<8x2xf64>
// CHECK-DAG: %[[P:.*]] = nn.dot {{.*}} : tensor<8x4xbf16>, tensor<4x4xbf16> -> tensor<8x4xbf16>
// CHECK-DAG: %[[P32:.*]] = nn.cast %[[P]] : tensor<8x4xbf16> -> tensor<8x4xf32>
// CHECK-DAG: nn.add %[[P32]], %{{.*}} : tensor<8x4xf32>
module attributes {plan.target = "cuda:sm_90"} {
  nn.weight @w "w" : tensor<4x2xf32> = dense<1.0> : tensor<4x2xf32>
  func.func @others(%x: tensor<8x4xf32>, %v: tensor<4xf32>, %d: tensor<8x4xf64>, %e: tensor<4x2xf64>) -> (tensor<8x4xf32>, tensor<8x2xf64>) {
    %w = nn.parameter @w : tensor<4x2xf32>
    %t = nn.transpose %w [1, 0] : tensor<4x2xf32> -> tensor<2x4xf32>
    %0 = nn.dot %w, %t batch [] x [] contract [1] x [0] : tensor<4x2xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
    %1 = nn.dot %x, %0 batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %2 = nn.broadcast %v [1] : tensor<4xf32> -> tensor<8x4xf32>
    %3 = nn.add %1, %2 : tensor<8x4xf32>
    %4 = nn.dot %d, %e batch [] x [] contract [1] x [0] : tensor<8x4xf64>, tensor<4x2xf64> -> tensor<8x2xf64>
    return %3, %4 : tensor<8x4xf32>, tensor<8x2xf64>
  }
}

// -----

// A slice of what is f32 is rounded after it was cut; of what is a half already, before. Attention has its masks in its own type.
// CHECK-LABEL: func.func @slices
// CHECK: %[[S:.*]] = nn.slice %{{.*}} : tensor<8x4xf32> -> tensor<2x4xf32>
// CHECK: %[[H:.*]] = nn.cast %[[S]] : tensor<2x4xf32> -> tensor<2x4xbf16>
// CHECK: %[[P:.*]] = nn.dot %[[H]], %{{.*}} -> tensor<2x4xbf16>
// CHECK: %[[Q:.*]] = nn.slice %[[P]] {{.*}} : tensor<2x4xbf16> -> tensor<1x4xbf16>
// CHECK: nn.dot %[[Q]], %{{.*}} -> tensor<1x4xbf16>
// CHECK: nn.attention {{.*}} mask_add %{{.*}} : tensor<1x1x1x8xbf16>
module attributes {plan.target = "cuda:sm_90"} {
  func.func @slices(%x: tensor<8x4xf32>, %y: tensor<4x4xf32>, %q: tensor<1x2x8x64xf32>, %m: tensor<1x1x1x8xf32>) -> (tensor<1x4xf32>, tensor<1x2x8x64xf32>) {
    %0 = nn.slice %x [0, 0] to [2, 4] by [1, 1] : tensor<8x4xf32> -> tensor<2x4xf32>
    %1 = nn.dot %0, %y batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %2 = nn.slice %1 [0, 0] to [1, 4] by [1, 1] : tensor<2x4xf32> -> tensor<1x4xf32>
    %3 = nn.dot %2, %y batch [] x [] contract [1] x [0] : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
    %4 = nn.attention %q, %q, %q mask_add %m : tensor<1x1x1x8xf32> scale 0.125 : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>
    return %3, %4 : tensor<1x4xf32>, tensor<1x2x8x64xf32>
  }
}

// -----

// CPUs multiply matrices of bf16, and nothing else. A bias is added to what was rounded.
// CHECK-LABEL: func.func @cpus
// CHECK: %[[P:.*]] = nn.dot {{.*}} : tensor<8x4xbf16>, tensor<4x2xbf16> -> tensor<8x2xbf16>
// CHECK: %[[P32:.*]] = nn.cast %[[P]] : tensor<8x2xbf16> -> tensor<8x2xf32>
// CHECK: %[[S:.*]] = nn.add %[[P32]], %{{.*}} : tensor<8x2xf32>
// CHECK: nn.relu %[[S]] : tensor<8x2xf32>
// CHECK: nn.conv {{.*}} : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
// F16-LABEL: func.func @cpus
// F16-NOT: f16
module attributes {plan.target = "cpu"} {
  func.func @cpus(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>, %b: tensor<2xf32>, %i: tensor<1x3x8x8xf32>, %k: tensor<4x3x3x3xf32>) -> (tensor<8x2xf32>, tensor<1x4x6x6xf32>) {
    %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %1 = nn.broadcast %b [1] : tensor<2xf32> -> tensor<8x2xf32>
    %2 = nn.add %0, %1 : tensor<8x2xf32>
    %3 = nn.relu %2 : tensor<8x2xf32>
    %4 = nn.conv %i, %k channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
    return %3, %4 : tensor<8x2xf32>, tensor<1x4x6x6xf32>
  }
}

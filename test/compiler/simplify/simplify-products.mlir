// RUN: partita-opt %s --nn-simplify-products --split-input-file | FileCheck %s

// Both factors go to the smaller operand.
// CHECK-LABEL: func.func @factors
// CHECK-SAME: %[[Q:.*]]: tensor<2x64xf32>, %[[K:.*]]: tensor<512x64xf32>
// CHECK: %[[C:.*]] = nn.constant dense<1.500000e+00> : tensor<2x64xf32>
// CHECK: %[[S:.*]] = nn.mul %[[Q]], %[[C]]
// CHECK: nn.dot %[[S]], %[[K]] batch
func.func @factors(%q: tensor<2x64xf32>, %k: tensor<512x64xf32>) -> tensor<2x512xf32> {
  %c = nn.constant dense<0.5> : tensor<2x64xf32>
  %d = nn.constant dense<3.0> : tensor<512x64xf32>
  %0 = nn.mul %q, %c : tensor<2x64xf32>
  %1 = nn.mul %d, %k : tensor<512x64xf32>
  %2 = nn.dot %0, %1 batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<512x64xf32> -> tensor<2x512xf32>
  return %2 : tensor<2x512xf32>
}

// -----

// What stays: a factor of the smaller operand, of weights, and of what has another use.
// CHECK-LABEL: func.func @others
// CHECK: %[[A:.*]] = nn.mul %{{.*}} : tensor<2x64xf32>
// CHECK: nn.dot %[[A]], %{{.*}} : tensor<2x64xf32>, tensor<512x64xf32>
// CHECK: %[[B:.*]] = nn.mul %{{.*}} : tensor<512x64xf32>
// CHECK: nn.dot %{{.*}}, %[[B]] batch
// CHECK: %[[W:.*]] = nn.mul %{{.*}} : tensor<512x64xf32>
// CHECK: nn.dot %{{.*}}, %[[W]] batch
nn.weight @w "w" : tensor<512x64xf32> = dense<1.0> : tensor<512x64xf32>
func.func @others(%q: tensor<2x64xf32>, %k: tensor<512x64xf32>) -> (tensor<2x512xf32>, tensor<2x512xf32>, tensor<512x64xf32>, tensor<2x512xf32>) {
  %c = nn.constant dense<0.5> : tensor<2x64xf32>
  %d = nn.constant dense<3.0> : tensor<512x64xf32>
  %0 = nn.mul %q, %c : tensor<2x64xf32>
  %1 = nn.dot %0, %k batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<512x64xf32> -> tensor<2x512xf32>
  %2 = nn.mul %k, %d : tensor<512x64xf32>
  %3 = nn.dot %q, %2 batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<512x64xf32> -> tensor<2x512xf32>
  %w = nn.parameter @w : tensor<512x64xf32>
  %4 = nn.mul %w, %d : tensor<512x64xf32>
  %5 = nn.dot %q, %4 batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<512x64xf32> -> tensor<2x512xf32>
  return %1, %3, %2, %5 : tensor<2x512xf32>, tensor<2x512xf32>, tensor<512x64xf32>, tensor<2x512xf32>
}

// -----

// Factors that together are no number, and one that halves have no room for.
// CHECK-LABEL: func.func @extremes
// CHECK: nn.mul %{{.*}} : tensor<2x64xf32>
// CHECK: nn.mul %{{.*}} : tensor<512x64xf32>
// CHECK: nn.mul %{{.*}} : tensor<512x64xf16>
func.func @extremes(%q: tensor<2x64xf32>, %k: tensor<512x64xf32>, %g: tensor<2x64xf16>, %h: tensor<512x64xf16>) -> (tensor<2x512xf32>, tensor<2x512xf16>) {
  %c = nn.constant dense<1.0e-30> : tensor<2x64xf32>
  %d = nn.constant dense<1.0e-30> : tensor<512x64xf32>
  %0 = nn.mul %q, %c : tensor<2x64xf32>
  %1 = nn.mul %k, %d : tensor<512x64xf32>
  %2 = nn.dot %0, %1 batch [] x [] contract [1] x [1] : tensor<2x64xf32>, tensor<512x64xf32> -> tensor<2x512xf32>
  %e = nn.constant dense<8.0> : tensor<512x64xf16>
  %3 = nn.mul %h, %e : tensor<512x64xf16>
  %4 = nn.dot %g, %3 batch [] x [] contract [1] x [1] : tensor<2x64xf16>, tensor<512x64xf16> -> tensor<2x512xf16>
  return %2, %4 : tensor<2x512xf32>, tensor<2x512xf16>
}

// -----

// Keys and values that serve two heads each. The keys come transposed.
// CHECK-LABEL: func.func @heads
// CHECK-SAME: %[[Q:.*]]: tensor<1x16x3x64xf32>, %[[K:.*]]: tensor<8x512x64xf32>, %[[V:.*]]: tensor<1x8x512x32xf32>
// CHECK: %[[QG:.*]] = nn.reshape %[[Q]] : tensor<1x16x3x64xf32> -> tensor<1x8x2x3x64xf32>
// CHECK: %[[KG:.*]] = nn.reshape %[[K]] : tensor<8x512x64xf32> -> tensor<1x8x512x64xf32>
// CHECK: %[[S:.*]] = nn.dot %[[QG]], %[[KG]] batch [0, 1] x [0, 1] contract [4] x [3] : {{.*}} -> tensor<1x8x2x3x512xf32>
// CHECK: %[[T:.*]] = nn.reshape %[[S]] : tensor<1x8x2x3x512xf32> -> tensor<1x16x3x512xf32>
// CHECK: %[[P:.*]] = nn.softmax %[[T]]
// CHECK: %[[PG:.*]] = nn.reshape %[[P]] : tensor<1x16x3x512xf32> -> tensor<1x8x2x3x512xf32>
// CHECK: %[[R:.*]] = nn.dot %[[PG]], %[[V]] batch [0, 1] x [0, 1] contract [4] x [2] : {{.*}} -> tensor<1x8x2x3x32xf32>
// CHECK: nn.reshape %[[R]] : tensor<1x8x2x3x32xf32> -> tensor<1x16x3x32xf32>
func.func @heads(%q: tensor<1x16x3x64xf32>, %k: tensor<8x512x64xf32>, %v: tensor<1x8x512x32xf32>) -> tensor<1x16x3x32xf32> {
  %0 = nn.broadcast %k [1, 3, 4] : tensor<8x512x64xf32> -> tensor<1x8x2x512x64xf32>
  %1 = nn.reshape %0 : tensor<1x8x2x512x64xf32> -> tensor<1x16x512x64xf32>
  %2 = nn.transpose %1 [0, 1, 3, 2] : tensor<1x16x512x64xf32> -> tensor<1x16x64x512xf32>
  %3 = nn.dot %q, %2 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x16x3x64xf32>, tensor<1x16x64x512xf32> -> tensor<1x16x3x512xf32>
  %4 = nn.softmax %3 dim 3 : tensor<1x16x3x512xf32>
  %5 = nn.broadcast %v [0, 1, 3, 4] : tensor<1x8x512x32xf32> -> tensor<1x8x2x512x32xf32>
  %6 = nn.reshape %5 : tensor<1x8x2x512x32xf32> -> tensor<1x16x512x32xf32>
  %7 = nn.dot %4, %6 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x16x3x512xf32>, tensor<1x16x512x32xf32> -> tensor<1x16x3x32xf32>
  return %7 : tensor<1x16x3x32xf32>
}

// -----

// One matrix for a whole batch, and for each of it.
// CHECK-LABEL: func.func @whole
// CHECK: nn.dot %{{.*}}, %{{.*}} batch [] x [] contract [2] x [0] : tensor<4x3x8xf32>, tensor<8x5xf32> -> tensor<4x3x5xf32>
func.func @whole(%x: tensor<4x3x8xf32>, %y: tensor<8x5xf32>) -> tensor<4x3x5xf32> {
  %0 = nn.broadcast %y [1, 2] : tensor<8x5xf32> -> tensor<4x8x5xf32>
  %1 = nn.dot %x, %0 batch [0] x [0] contract [2] x [1] : tensor<4x3x8xf32>, tensor<4x8x5xf32> -> tensor<4x3x5xf32>
  return %1 : tensor<4x3x5xf32>
}

// -----

// What would change the order of the result, and what repeats rows, stays.
// CHECK-LABEL: func.func @orders
// CHECK: nn.dot %{{.*}}, %{{.*}} batch [0] x [0] contract [2] x [2] : tensor<16x3x64xf32>, tensor<16x512x64xf32>
// CHECK: nn.dot %{{.*}}, %{{.*}} batch [0] x [0] contract [2] x [2] : tensor<8x3x64xf32>, tensor<8x512x64xf32>
func.func @orders(%q: tensor<16x3x64xf32>, %k: tensor<8x512x64xf32>, %r: tensor<8x3x64xf32>, %l: tensor<8x64xf32>) -> (tensor<16x3x512xf32>, tensor<8x3x512xf32>) {
  %0 = nn.broadcast %k [1, 2, 3] : tensor<8x512x64xf32> -> tensor<2x8x512x64xf32>
  %1 = nn.reshape %0 : tensor<2x8x512x64xf32> -> tensor<16x512x64xf32>
  %2 = nn.dot %q, %1 batch [0] x [0] contract [2] x [2] : tensor<16x3x64xf32>, tensor<16x512x64xf32> -> tensor<16x3x512xf32>
  %3 = nn.broadcast %l [0, 2] : tensor<8x64xf32> -> tensor<8x512x64xf32>
  %4 = nn.dot %r, %3 batch [0] x [0] contract [2] x [2] : tensor<8x3x64xf32>, tensor<8x512x64xf32> -> tensor<8x3x512xf32>
  return %2, %4 : tensor<16x3x512xf32>, tensor<8x3x512xf32>
}

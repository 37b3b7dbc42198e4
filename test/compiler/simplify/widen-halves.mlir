// RUN: partita-opt %s --nn-widen-halves | FileCheck %s
// RUN: partita-opt %s --nn-widen-halves=keep=true | FileCheck %s --check-prefix KEEP
// RUN: sed -e '1i module attributes {plan.target = "cuda:sm_90"} {' -e '$a }' %s | partita-opt --nn-widen-halves | FileCheck %s --check-prefix KEEP
// RUN: sed 's/^func.func @product(\(.*\)) -> tensor<8x2xf16> {/func.func @product(\1) -> tensor<8x2xf16> attributes {dist.targets = ["cpu", "cuda:sm_90"]} {/' %s | partita-opt --nn-widen-halves | FileCheck %s --check-prefix MIXED

// Where one of several devices computes halves, all do.
// MIXED-LABEL: func.func @product
// MIXED-NOT: nn.cast
// MIXED: return

nn.weight @w "w" : tensor<4x2xf16> = dense<1.0> : tensor<4x2xf16>
nn.weight @table "table" : tensor<100x4xbf16> = dense<1.0> : tensor<100x4xbf16>

// Weights and inputs are converted, and nothing is rounded before the end.
// CHECK-LABEL: func.func @product
// CHECK: %[[X:.*]] = nn.cast %{{.*}} : tensor<8x4xf16> -> tensor<8x4xf32>
// CHECK: %[[W:.*]] = nn.parameter @w : tensor<4x2xf16>
// CHECK: %[[V:.*]] = nn.cast %[[W]] : tensor<4x2xf16> -> tensor<4x2xf32>
// CHECK: %[[D:.*]] = nn.dot %[[X]], %[[V]] {{.*}} -> tensor<8x2xf32>
// CHECK: %[[C:.*]] = nn.constant dense<5.000000e-01> : tensor<8x2xf32>
// CHECK: %[[S:.*]] = nn.add %[[D]], %[[C]] : tensor<8x2xf32>
// CHECK: %[[R:.*]] = nn.relu %[[S]] : tensor<8x2xf32>
// CHECK: %[[Y:.*]] = nn.cast %[[R]] : tensor<8x2xf32> -> tensor<8x2xf16>
// CHECK: return %[[Y]] : tensor<8x2xf16>
// KEEP-LABEL: func.func @product
// KEEP-NOT: nn.cast
// KEEP: return
func.func @product(%x: tensor<8x4xf16>) -> tensor<8x2xf16> {
  %w = nn.parameter @w : tensor<4x2xf16>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf16>, tensor<4x2xf16> -> tensor<8x2xf16>
  %b = nn.constant dense<0.5> : tensor<8x2xf16>
  %1 = nn.add %0, %b : tensor<8x2xf16>
  %2 = nn.relu %1 : tensor<8x2xf16>
  return %2 : tensor<8x2xf16>
}

// What the model converts itself is rounded; what an op converts within itself
// is not.
// CHECK-LABEL: func.func @conversions
// CHECK: %[[E:.*]] = nn.exp %{{.*}} : tensor<8xf32>
// CHECK: %[[H:.*]] = nn.cast %[[E]] : tensor<8xf32> -> tensor<8xbf16>
// CHECK: %[[N:.*]] = nn.cast %[[H]] : tensor<8xbf16> -> tensor<8xf32>
// CHECK: %[[L:.*]] = nn.log %[[N]] : tensor<8xf32>
// CHECK: nn.neg %[[L]] : tensor<8xf32>
// KEEP-LABEL: func.func @conversions
// KEEP: nn.log
// KEEP: nn.cast %{{.*}} : tensor<8xf32> -> tensor<8xbf16>
// KEEP: nn.neg %{{.*}} : tensor<8xbf16>
func.func @conversions(%x: tensor<8xf32>) -> tensor<8xbf16> {
  %0 = nn.exp %x : tensor<8xf32>
  %1 = nn.cast %0 : tensor<8xf32> -> tensor<8xbf16>
  %2 = nn.cast %1 : tensor<8xbf16> -> tensor<8xf32>
  %3 = nn.log %2 : tensor<8xf32>
  %4 = nn.cast %3 {nn.inner} : tensor<8xf32> -> tensor<8xbf16>
  %5 = nn.neg %4 : tensor<8xbf16>
  return %5 : tensor<8xbf16>
}

// Who compares, counts or ranks sees the number that the model says. The side
// of 0 is the same.
// CHECK-LABEL: func.func @jumps
// CHECK: %[[S:.*]] = nn.add %{{.*}} : tensor<8xf32>
// CHECK: %[[H:.*]] = nn.cast %[[S]] : tensor<8xf32> -> tensor<8xf16>
// CHECK: %[[R:.*]] = nn.cast %[[H]] : tensor<8xf16> -> tensor<8xf32>
// CHECK: nn.compare gt %[[R]], %{{.*}} : tensor<8xf32>
// CHECK: nn.compare lt %[[S]], %{{.*}} : tensor<8xf32>
// CHECK: nn.floor %[[R]] : tensor<8xf32>
// CHECK: nn.cast %[[R]] : tensor<8xf32> -> tensor<8xi32>
// CHECK: nn.bitcast %[[H]] : tensor<8xf16> -> tensor<8xi16>
// An input is a half as it is.
// CHECK: nn.compare gt %[[X:[^,]*]], %{{.*}} : tensor<8xf32>
func.func @jumps(%x: tensor<8xf16>) -> (tensor<8xi1>, tensor<8xi1>, tensor<8xf16>, tensor<8xi32>, tensor<8xi16>, tensor<8xi1>) {
  %0 = nn.add %x, %x : tensor<8xf16>
  %one = nn.constant dense<1.0> : tensor<8xf16>
  %zero = nn.constant dense<0.0> : tensor<8xf16>
  %1 = nn.compare gt %0, %one : tensor<8xf16> -> tensor<8xi1>
  %2 = nn.compare lt %0, %zero : tensor<8xf16> -> tensor<8xi1>
  %3 = nn.floor %0 : tensor<8xf16>
  %4 = nn.cast %0 : tensor<8xf16> -> tensor<8xi32>
  %5 = nn.bitcast %0 : tensor<8xf16> -> tensor<8xi16>
  %6 = nn.compare gt %x, %one : tensor<8xf16> -> tensor<8xi1>
  return %1, %2, %3, %4, %5, %6 : tensor<8xi1>, tensor<8xi1>, tensor<8xf16>, tensor<8xi32>, tensor<8xi16>, tensor<8xi1>
}

// An index of the largest in f32, where an op has widened its operand itself.
// CHECK-LABEL: func.func @ranks
// CHECK: %[[H:.*]] = nn.cast %{{.*}} : tensor<2x8xf32> -> tensor<2x8xf16>
// CHECK: %[[R:.*]] = nn.cast %[[H]] : tensor<2x8xf16> -> tensor<2x8xf32>
// CHECK: nn.top_k largest %[[R]]
func.func @ranks(%x: tensor<2x8xf16>) -> tensor<2x3xi64> {
  %0 = nn.tanh %x : tensor<2x8xf16>
  %1 = nn.cast %0 : tensor<2x8xf16> -> tensor<2x8xf32>
  %2 = nn.top_k largest %1 : tensor<2x8xf32> -> tensor<2x3xi64>
  return %2 : tensor<2x3xi64>
}

// Only the rows that are chosen.
// CHECK-LABEL: func.func @lookup
// CHECK: %[[T:.*]] = nn.parameter @table : tensor<100x4xbf16>
// CHECK: %[[G:.*]] = nn.gather %[[T]], %{{.*}} -> tensor<3x4xbf16>
// CHECK: %[[W:.*]] = nn.cast %[[G]] : tensor<3x4xbf16> -> tensor<3x4xf32>
// CHECK: nn.exp %[[W]] : tensor<3x4xf32>
func.func @lookup(%i: tensor<3xi64>) -> tensor<3x4xbf16> {
  %w = nn.parameter @table : tensor<100x4xbf16>
  %0 = nn.gather %w, %i dim 0 : tensor<100x4xbf16>, tensor<3xi64> -> tensor<3x4xbf16>
  %1 = nn.exp %0 : tensor<3x4xbf16>
  return %1 : tensor<3x4xbf16>
}

// Halves that are only moved stay halves.
// CHECK-LABEL: func.func @moved
// CHECK-SAME: (%[[X:.*]]: tensor<2x8xf16>)
// CHECK: %[[T:.*]] = nn.transpose %[[X]] [1, 0] : tensor<2x8xf16> -> tensor<8x2xf16>
// CHECK: return %[[T]] : tensor<8x2xf16>
func.func @moved(%x: tensor<2x8xf16>) -> tensor<8x2xf16> {
  %0 = nn.transpose %x [1, 0] : tensor<2x8xf16> -> tensor<8x2xf16>
  return %0 : tensor<8x2xf16>
}

// RUN: partita-opt %s --nn-gather-first --canonicalize | FileCheck %s

nn.weight @q "q" : tensor<100x16xi8> = dense<3> : tensor<100x16xi8>
nn.weight @s "s" : tensor<100xf32> = dense<2.0> : tensor<100xf32>
nn.weight @b "b" : tensor<100x4xf32> = dense<2.0> : tensor<100x4xf32>
nn.weight @f "f" : tensor<100x16xf32> = dense<2.0> : tensor<100x16xf32>

// One scale a row.
// CHECK-LABEL: func.func @rows
// CHECK-DAG: %[[Q:.*]] = nn.gather %{{.*}}, %arg0 dim 0 : tensor<100x16xi8>, tensor<2x3xi64> -> tensor<2x3x16xi8>
// CHECK-DAG: %[[S:.*]] = nn.gather %{{.*}}, %arg0 dim 0 : tensor<100xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
// CHECK-DAG: %[[F:.*]] = nn.cast %[[Q]]
// CHECK-DAG: %[[B:.*]] = nn.broadcast %[[S]] [0, 1] : tensor<2x3xf32> -> tensor<2x3x16xf32>
// CHECK: %[[R:.*]] = nn.mul %[[F]], %[[B]]
// CHECK: return %[[R]]
func.func @rows(%ids: tensor<2x3xi64>) -> tensor<2x3x16xf32> {
  %q = nn.parameter @q : tensor<100x16xi8>
  %s = nn.parameter @s : tensor<100xf32>
  %f = nn.cast %q : tensor<100x16xi8> -> tensor<100x16xf32>
  %b = nn.broadcast %s [0] : tensor<100xf32> -> tensor<100x16xf32>
  %m = nn.mul %f, %b : tensor<100x16xf32>
  %r = nn.gather %m, %ids dim 0 : tensor<100x16xf32>, tensor<2x3xi64> -> tensor<2x3x16xf32>
  return %r : tensor<2x3x16xf32>
}

// One scale for blocks of a row.
// CHECK-LABEL: func.func @blocks
// CHECK: nn.gather %{{.*}} : tensor<100x16xi8>, tensor<3xi64> -> tensor<3x16xi8>
// CHECK: nn.gather %{{.*}} : tensor<100x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
// CHECK: nn.mul %{{.*}} : tensor<3x4x4xf32>
func.func @blocks(%ids: tensor<3xi64>) -> tensor<3x16xf32> {
  %q = nn.parameter @q : tensor<100x16xi8>
  %s = nn.parameter @b : tensor<100x4xf32>
  %f = nn.cast %q : tensor<100x16xi8> -> tensor<100x16xf32>
  %g = nn.reshape %f : tensor<100x16xf32> -> tensor<100x4x4xf32>
  %b = nn.broadcast %s [0, 1] : tensor<100x4xf32> -> tensor<100x4x4xf32>
  %m = nn.mul %g, %b : tensor<100x4x4xf32>
  %t = nn.reshape %m : tensor<100x4x4xf32> -> tensor<100x16xf32>
  %r = nn.gather %t, %ids dim 0 : tensor<100x16xf32>, tensor<3xi64> -> tensor<3x16xf32>
  return %r : tensor<3x16xf32>
}

// Along another dimension, with a scale that is the same for all of it.
// CHECK-LABEL: func.func @columns
// CHECK: nn.gather %{{.*}} dim 1 : tensor<100x16xi8>, tensor<i64> -> tensor<100xi8>
// CHECK-NOT: nn.gather
// CHECK: nn.mul %{{.*}} : tensor<100xf32>
func.func @columns(%id: tensor<i64>) -> tensor<100xf32> {
  %q = nn.parameter @q : tensor<100x16xi8>
  %s = nn.parameter @s : tensor<100xf32>
  %f = nn.cast %q : tensor<100x16xi8> -> tensor<100x16xf32>
  %b = nn.broadcast %s [0] : tensor<100xf32> -> tensor<100x16xf32>
  %m = nn.mul %f, %b : tensor<100x16xf32>
  %r = nn.gather %m, %id dim 1 : tensor<100x16xf32>, tensor<i64> -> tensor<100xf32>
  return %r : tensor<100xf32>
}

// A table that takes no more is computed at load, and so is one with another use.
// CHECK-LABEL: func.func @as_large
// CHECK: nn.exp {{.*}} : tensor<100x16xf32>
func.func @as_large(%ids: tensor<3xi64>) -> tensor<3x16xf32> {
  %f = nn.parameter @f : tensor<100x16xf32>
  %e = nn.exp %f : tensor<100x16xf32>
  %r = nn.gather %e, %ids dim 0 : tensor<100x16xf32>, tensor<3xi64> -> tensor<3x16xf32>
  return %r : tensor<3x16xf32>
}
// CHECK-LABEL: func.func @used_twice
// CHECK: nn.cast {{.*}} : tensor<100x16xi8> -> tensor<100x16xf32>
func.func @used_twice(%ids: tensor<3xi64>) -> (tensor<3x16xf32>, tensor<100x16xf32>) {
  %q = nn.parameter @q : tensor<100x16xi8>
  %f = nn.cast %q : tensor<100x16xi8> -> tensor<100x16xf32>
  %r = nn.gather %f, %ids dim 0 : tensor<100x16xf32>, tensor<3xi64> -> tensor<3x16xf32>
  return %r, %f : tensor<3x16xf32>, tensor<100x16xf32>
}

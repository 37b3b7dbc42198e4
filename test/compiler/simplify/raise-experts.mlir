// RUN: partita-opt %s --nn-raise-experts | FileCheck %s

// Rows are columns of the product.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[W:.*]]: tensor<4x96x64xf32>, %[[I:.*]]: tensor<12xi32>, %[[X:.*]]: tensor<12x64x1xf32>)
// CHECK-DAG: %[[R:.*]] = nn.reshape %[[X]] : tensor<12x64x1xf32> -> tensor<12x64xf32>
// CHECK-DAG: %[[J:.*]] = nn.cast %[[I]] : tensor<12xi32> -> tensor<12xi64>
// CHECK-DAG: %[[P:.*]] = nn.add %[[J]],
// CHECK: %[[S:.*]] = nn.select %{{.*}}, %[[P]], %[[J]]
// CHECK: %[[L:.*]] = nn.max %[[S]],
// CHECK: %[[E:.*]] = nn.min %[[L]],
// CHECK: %[[D:.*]] = nn.expert_dot %[[R]], %[[W]] experts %[[E]] : tensor<12x64xf32>, tensor<4x96x64xf32>, tensor<12xi64> -> tensor<12x96xf32>
// CHECK: %[[Y:.*]] = nn.reshape %[[D]] : tensor<12x96xf32> -> tensor<12x96x1xf32>
// CHECK: return %[[Y]]
func.func @columns(%w: tensor<4x96x64xf32>, %i: tensor<12xi32>, %x: tensor<12x64x1xf32>) -> tensor<12x96x1xf32> {
  %g = nn.gather %w, %i dim 0 : tensor<4x96x64xf32>, tensor<12xi32> -> tensor<12x96x64xf32>
  %r = nn.dot %g, %x batch [0] x [0] contract [2] x [1] : tensor<12x96x64xf32>, tensor<12x64x1xf32> -> tensor<12x96x1xf32>
  return %r : tensor<12x96x1xf32>
}

// The other way round: matrices are transposed on the way.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[W:.*]]: tensor<4x64x96xf32>,
// CHECK: %[[T:.*]] = nn.transpose %[[W]] [0, 2, 1] : tensor<4x64x96xf32> -> tensor<4x96x64xf32>
// CHECK: nn.expert_dot %{{.*}}, %[[T]] experts %{{.*}} : tensor<6x2x64xf32>, tensor<4x96x64xf32>, tensor<6x2xi64> -> tensor<6x2x96xf32>
func.func @rows(%w: tensor<4x64x96xf32>, %i: tensor<6x2xi64>, %x: tensor<6x2x1x64xf32>) -> tensor<6x2x1x96xf32> {
  %g = nn.gather %w, %i dim 0 : tensor<4x64x96xf32>, tensor<6x2xi64> -> tensor<6x2x64x96xf32>
  %r = nn.dot %x, %g batch [0, 1] x [0, 1] contract [3] x [2] : tensor<6x2x1x64xf32>, tensor<6x2x64x96xf32> -> tensor<6x2x1x96xf32>
  return %r : tensor<6x2x1x96xf32>
}

// Without a dimension of 1.
// CHECK-LABEL: func.func @vectors
// CHECK: nn.expert_dot
func.func @vectors(%w: tensor<4x96x64xf32>, %i: tensor<12xi64>, %x: tensor<12x64xf32>) -> tensor<12x96xf32> {
  %g = nn.gather %w, %i dim 0 : tensor<4x96x64xf32>, tensor<12xi64> -> tensor<12x96x64xf32>
  %r = nn.dot %x, %g batch [0] x [0] contract [1] x [2] : tensor<12x64xf32>, tensor<12x96x64xf32> -> tensor<12x96xf32>
  return %r : tensor<12x96xf32>
}

// Several rows share a matrix, one index chooses a matrix for all, and
// matrices are gathered along another dimension.
// CHECK-LABEL: func.func @others
// CHECK-NOT: nn.expert_dot
func.func @others(%w: tensor<4x96x64xf32>, %i: tensor<12xi64>, %x: tensor<12x5x64xf32>, %j: tensor<i64>, %y: tensor<12x64xf32>, %v: tensor<96x4x64xf32>)
    -> (tensor<12x5x96xf32>, tensor<12x96xf32>, tensor<12x96xf32>) {
  %g = nn.gather %w, %i dim 0 : tensor<4x96x64xf32>, tensor<12xi64> -> tensor<12x96x64xf32>
  %r = nn.dot %x, %g batch [0] x [0] contract [2] x [2] : tensor<12x5x64xf32>, tensor<12x96x64xf32> -> tensor<12x5x96xf32>
  %h = nn.gather %w, %j dim 0 : tensor<4x96x64xf32>, tensor<i64> -> tensor<96x64xf32>
  %s = nn.dot %y, %h batch [] x [] contract [1] x [1] : tensor<12x64xf32>, tensor<96x64xf32> -> tensor<12x96xf32>
  %k = nn.gather %v, %i dim 1 : tensor<96x4x64xf32>, tensor<12xi64> -> tensor<96x12x64xf32>
  %t = nn.dot %y, %k batch [0] x [1] contract [1] x [2] : tensor<12x64xf32>, tensor<96x12x64xf32> -> tensor<12x96xf32>
  return %r, %s, %t : tensor<12x5x96xf32>, tensor<12x96xf32>, tensor<12x96xf32>
}

// RUN: partita-opt --nn-contract-states %s | FileCheck %s

// Keys: the scores of the ring are brought into order.
// CHECK-LABEL: func.func @scores
// CHECK: %[[OLD:.*]] = nn.dot %{{.*}}, %[[RING:.*]] batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x2x1x4xf32>, tensor<1x2x7x4xf32> -> tensor<1x2x1x7xf32>
// CHECK: %[[ORDERED:.*]] = nn.gather %[[OLD]], %{{.*}} dim 3
// CHECK: %[[NEW:.*]] = nn.dot %{{.*}}, %{{.*}} batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x2x1x4xf32>, tensor<1x2x2x4xf32> -> tensor<1x2x1x2xf32>
// CHECK: nn.concat %[[ORDERED]], %[[NEW]] dim 3
func.func @scores(%q: tensor<1x2x1x4xf32>, %ring: tensor<1x2x7x4xf32>, %new: tensor<1x2x2x4xf32>, %place: tensor<i64>) -> tensor<1x2x1x9xf32> {
  %i = nn.iota 0 : tensor<7xi64>
  %p = nn.broadcast %place [] : tensor<i64> -> tensor<7xi64>
  %s = nn.add %i, %p : tensor<7xi64>
  %n = nn.constant dense<7> : tensor<7xi64>
  %r = nn.rem %s, %n : tensor<7xi64>
  %old = nn.gather %ring, %r dim 2 : tensor<1x2x7x4xf32>, tensor<7xi64> -> tensor<1x2x7x4xf32>
  %all = nn.concat %old, %new dim 2 : (tensor<1x2x7x4xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x9x4xf32>
  %d = nn.dot %q, %all batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x2x1x4xf32>, tensor<1x2x9x4xf32> -> tensor<1x2x1x9xf32>
  return %d : tensor<1x2x1x9xf32>
}

// Values: the probabilities are brought into the order of the ring.
// CHECK-LABEL: func.func @values
// CHECK: %[[FIRST:.*]] = nn.slice %{{.*}} [0, 0, 0, 0] to [1, 2, 1, 7]
// CHECK: %[[LAST:.*]] = nn.slice %{{.*}} [0, 0, 0, 7] to [1, 2, 1, 9]
// CHECK: %[[BACK:.*]] = nn.sub %{{.*}}, %{{.*}} : tensor<i64>
// CHECK: %[[ORDERED:.*]] = nn.gather %[[FIRST]], %{{.*}} dim 3
// CHECK: %[[A:.*]] = nn.dot %[[ORDERED]], %{{.*}} batch [0, 1] x [0, 1] contract [3] x [2]
// CHECK: %[[B:.*]] = nn.dot %[[LAST]], %{{.*}} batch [0, 1] x [0, 1] contract [3] x [2]
// CHECK: nn.add %[[A]], %[[B]]
func.func @values(%p: tensor<1x2x1x9xf32>, %ring: tensor<1x2x7x4xf32>, %new: tensor<1x2x2x4xf32>, %place: tensor<i64>) -> tensor<1x2x1x4xf32> {
  %i = nn.iota 0 : tensor<7xi64>
  %b = nn.broadcast %place [] : tensor<i64> -> tensor<7xi64>
  %s = nn.add %b, %i : tensor<7xi64>
  %n = nn.constant dense<7> : tensor<7xi64>
  %r = nn.rem %s, %n : tensor<7xi64>
  %old = nn.gather %ring, %r dim 2 : tensor<1x2x7x4xf32>, tensor<7xi64> -> tensor<1x2x7x4xf32>
  %all = nn.concat %old, %new dim 2 : (tensor<1x2x7x4xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x9x4xf32>
  %d = nn.dot %p, %all batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x2x1x9xf32>, tensor<1x2x9x4xf32> -> tensor<1x2x1x4xf32>
  return %d : tensor<1x2x1x4xf32>
}

// Keys that are turned.
// CHECK-LABEL: func.func @turned
// CHECK: nn.dot %arg0, %arg1 batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x2x1x4xf32>, tensor<1x2x7x4xf32>
// CHECK: nn.gather %{{.*}}, %{{.*}} dim 3
// CHECK: nn.dot %arg0, %arg2 batch [0, 1] x [0, 1] contract [3] x [3]
func.func @turned(%q: tensor<1x2x1x4xf32>, %ring: tensor<1x2x7x4xf32>, %new: tensor<1x2x2x4xf32>, %place: tensor<i64>) -> tensor<1x2x1x9xf32> {
  %i = nn.iota 0 : tensor<7xi64>
  %p = nn.broadcast %place [] : tensor<i64> -> tensor<7xi64>
  %s = nn.add %i, %p : tensor<7xi64>
  %n = nn.constant dense<7> : tensor<7xi64>
  %r = nn.rem %s, %n : tensor<7xi64>
  %old = nn.gather %ring, %r dim 2 : tensor<1x2x7x4xf32>, tensor<7xi64> -> tensor<1x2x7x4xf32>
  %all = nn.concat %old, %new dim 2 : (tensor<1x2x7x4xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x9x4xf32>
  %t = nn.transpose %all [0, 1, 3, 2] : tensor<1x2x9x4xf32> -> tensor<1x2x4x9xf32>
  %d = nn.dot %q, %t batch [0, 1] x [0, 1] contract [3] x [2] : tensor<1x2x1x4xf32>, tensor<1x2x4x9xf32> -> tensor<1x2x1x9xf32>
  return %d : tensor<1x2x1x9xf32>
}

// An order of another length is no ring's.
// CHECK-LABEL: func.func @other
// CHECK: nn.gather
// CHECK-NEXT: nn.concat
// CHECK-NEXT: nn.dot
func.func @other(%q: tensor<1x4xf32>, %x: tensor<7x4xf32>, %new: tensor<2x4xf32>, %place: tensor<i64>) -> tensor<1x9xf32> {
  %i = nn.iota 0 : tensor<7xi64>
  %p = nn.broadcast %place [] : tensor<i64> -> tensor<7xi64>
  %s = nn.add %i, %p : tensor<7xi64>
  %n = nn.constant dense<6> : tensor<7xi64>
  %r = nn.rem %s, %n : tensor<7xi64>
  %old = nn.gather %x, %r dim 0 : tensor<7x4xf32>, tensor<7xi64> -> tensor<7x4xf32>
  %all = nn.concat %old, %new dim 0 : (tensor<7x4xf32>, tensor<2x4xf32>) -> tensor<9x4xf32>
  %d = nn.dot %q, %all batch [] x [] contract [1] x [1] : tensor<1x4xf32>, tensor<9x4xf32> -> tensor<1x9xf32>
  return %d : tensor<1x9xf32>
}

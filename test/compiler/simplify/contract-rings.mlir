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

// Rings that begin at places of their own are a batch.
// CHECK-LABEL: func.func @scores_by_row
// CHECK: %[[OLD:.*]] = nn.dot %{{.*}}, %arg1 batch [0, 1] x [0, 1] contract [3] x [3] : tensor<3x2x1x4xf32>, tensor<3x2x7x4xf32> -> tensor<3x2x1x7xf32>
// CHECK: %[[I:.*]] = nn.broadcast %{{.*}} [0, 3] : tensor<3x7xi64> -> tensor<3x2x1x7xi64>
// CHECK: nn.gather_elements %[[OLD]], %[[I]] dim 3
func.func @scores_by_row(%q: tensor<3x2x1x4xf32>, %ring: tensor<3x2x7x4xf32>, %new: tensor<3x2x2x4xf32>, %place: tensor<3xi64>) -> tensor<3x2x1x9xf32> {
  %i = nn.iota 1 : tensor<3x7xi64>
  %p = nn.broadcast %place [0] : tensor<3xi64> -> tensor<3x7xi64>
  %s = nn.add %i, %p : tensor<3x7xi64>
  %n = nn.constant dense<7> : tensor<3x7xi64>
  %r = nn.rem %s, %n : tensor<3x7xi64>
  %e = nn.broadcast %r [0, 2] : tensor<3x7xi64> -> tensor<3x2x7x4xi64>
  %old = nn.gather_elements %ring, %e dim 2 : tensor<3x2x7x4xf32>, tensor<3x2x7x4xi64> -> tensor<3x2x7x4xf32>
  %all = nn.concat %old, %new dim 2 : (tensor<3x2x7x4xf32>, tensor<3x2x2x4xf32>) -> tensor<3x2x9x4xf32>
  %d = nn.dot %q, %all batch [0, 1] x [0, 1] contract [3] x [3] : tensor<3x2x1x4xf32>, tensor<3x2x9x4xf32> -> tensor<3x2x1x9xf32>
  return %d : tensor<3x2x1x9xf32>
}

// CHECK-LABEL: func.func @values_by_row
// CHECK: %[[FIRST:.*]] = nn.slice %{{.*}} [0, 0, 0, 0] to [3, 2, 1, 7]
// CHECK: %[[BACK:.*]] = nn.sub %{{.*}}, %arg3 : tensor<3xi64>
// CHECK: %[[I:.*]] = nn.broadcast %{{.*}} [0, 3] : tensor<3x7xi64> -> tensor<3x2x1x7xi64>
// CHECK: %[[ORDERED:.*]] = nn.gather_elements %[[FIRST]], %[[I]] dim 3
// CHECK: nn.dot %[[ORDERED]], %arg1 batch [0, 1] x [0, 1] contract [3] x [2]
func.func @values_by_row(%p: tensor<3x2x1x9xf32>, %ring: tensor<3x2x7x4xf32>, %new: tensor<3x2x2x4xf32>, %place: tensor<3xi64>) -> tensor<3x2x1x4xf32> {
  %i = nn.constant dense<[[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]]> : tensor<3x7xi64>
  %b = nn.broadcast %place [0] : tensor<3xi64> -> tensor<3x7xi64>
  %s = nn.add %b, %i : tensor<3x7xi64>
  %n = nn.constant dense<7> : tensor<3x7xi64>
  %r = nn.rem %s, %n : tensor<3x7xi64>
  %e = nn.broadcast %r [0, 2] : tensor<3x7xi64> -> tensor<3x2x7x4xi64>
  %old = nn.gather_elements %ring, %e dim 2 : tensor<3x2x7x4xf32>, tensor<3x2x7x4xi64> -> tensor<3x2x7x4xf32>
  %all = nn.concat %old, %new dim 2 : (tensor<3x2x7x4xf32>, tensor<3x2x2x4xf32>) -> tensor<3x2x9x4xf32>
  %d = nn.dot %p, %all batch [0, 1] x [0, 1] contract [3] x [2] : tensor<3x2x1x9xf32>, tensor<3x2x9x4xf32> -> tensor<3x2x1x4xf32>
  return %d : tensor<3x2x1x4xf32>
}

// Rows that the product sums over are no batch: the entries are brought into order.
// CHECK-LABEL: func.func @summed_rows
// CHECK: nn.gather_elements %arg1
// CHECK: nn.concat
// CHECK: nn.dot
func.func @summed_rows(%q: tensor<3x4xf32>, %ring: tensor<3x7x4xf32>, %new: tensor<3x2x4xf32>, %place: tensor<3xi64>) -> tensor<9xf32> {
  %i = nn.iota 1 : tensor<3x7xi64>
  %p = nn.broadcast %place [0] : tensor<3xi64> -> tensor<3x7xi64>
  %s = nn.add %i, %p : tensor<3x7xi64>
  %n = nn.constant dense<7> : tensor<3x7xi64>
  %r = nn.rem %s, %n : tensor<3x7xi64>
  %e = nn.broadcast %r [0, 1] : tensor<3x7xi64> -> tensor<3x7x4xi64>
  %old = nn.gather_elements %ring, %e dim 1 : tensor<3x7x4xf32>, tensor<3x7x4xi64> -> tensor<3x7x4xf32>
  %all = nn.concat %old, %new dim 1 : (tensor<3x7x4xf32>, tensor<3x2x4xf32>) -> tensor<3x9x4xf32>
  %d = nn.dot %q, %all batch [] x [] contract [0, 1] x [0, 2] : tensor<3x4xf32>, tensor<3x9x4xf32> -> tensor<9xf32>
  return %d : tensor<9xf32>
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

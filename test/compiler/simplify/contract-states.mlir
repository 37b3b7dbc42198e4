// RUN: partita-opt %s --nn-contract-states --canonicalize | FileCheck %s

nn.weight state @w "w" : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>
nn.weight state @k "k" : tensor<2x3x4x5xf32> = dense<1.0> : tensor<2x3x4x5xf32>
nn.weight @c "c" : tensor<9x4xf32> = dense<1.0> : tensor<9x4xf32>

// CHECK-LABEL: func.func @both_sides
// CHECK: %[[W:.*]] = nn.parameter state @w
// CHECK-NOT: nn.transpose
// CHECK: nn.dot %{{.*}}, %[[W]] batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<9x4xf32> -> tensor<2x9xf32>
// CHECK: nn.dot %[[W]], %{{.*}} batch [] x [] contract [0] x [1] : tensor<9x4xf32>, tensor<2x9xf32> -> tensor<4x2xf32>
func.func @both_sides(%x: tensor<2x4xf32>, %y: tensor<2x9xf32>) -> (tensor<2x9xf32>, tensor<4x2xf32>) {
  %w = nn.parameter state @w : tensor<9x4xf32>
  %t = nn.transpose %w [1, 0] : tensor<9x4xf32> -> tensor<4x9xf32>
  %0 = nn.dot %x, %t batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x9xf32> -> tensor<2x9xf32>
  %1 = nn.dot %t, %y batch [] x [] contract [1] x [1] : tensor<4x9xf32>, tensor<2x9xf32> -> tensor<4x2xf32>
  return %0, %1 : tensor<2x9xf32>, tensor<4x2xf32>
}

// Batch dimensions are renamed, too. Those that are kept, contracted or of the batch must follow one another in the state, for a library to see a matrix.
// CHECK-LABEL: func.func @ranks
// CHECK-DAG: %[[K:.*]] = nn.parameter state @k
// CHECK-DAG: %[[T:.*]] = nn.transpose %[[K]] [2, 3, 1, 0]
// CHECK-DAG: %[[U:.*]] = nn.transpose %[[K]] [1, 3, 0, 2]
// CHECK-DAG: nn.dot %{{.*}}, %[[K]] batch [0] x [2] contract [1] x [3] : tensor<4x5x7xf32>, tensor<2x3x4x5xf32> -> tensor<4x7x2x3xf32>
// CHECK-DAG: nn.dot %{{.*}}, %[[T]] batch [0] x [0] contract [1] x [1]
// CHECK-DAG: nn.dot %{{.*}}, %[[U]] batch [0] x [0] contract [1] x [1]
func.func @ranks(%x: tensor<4x5x7xf32>, %y: tensor<3x5x7xf32>) -> (tensor<4x7x2x3xf32>, tensor<4x7x3x2xf32>, tensor<3x7x2x4xf32>) {
  %k = nn.parameter state @k : tensor<2x3x4x5xf32>
  %s = nn.transpose %k [2, 3, 0, 1] : tensor<2x3x4x5xf32> -> tensor<4x5x2x3xf32>
  %0 = nn.dot %x, %s batch [0] x [0] contract [1] x [1] : tensor<4x5x7xf32>, tensor<4x5x2x3xf32> -> tensor<4x7x2x3xf32>
  %t = nn.transpose %k [2, 3, 1, 0] : tensor<2x3x4x5xf32> -> tensor<4x5x3x2xf32>
  %1 = nn.dot %x, %t batch [0] x [0] contract [1] x [1] : tensor<4x5x7xf32>, tensor<4x5x3x2xf32> -> tensor<4x7x3x2xf32>
  %u = nn.transpose %k [1, 3, 0, 2] : tensor<2x3x4x5xf32> -> tensor<3x5x2x4xf32>
  %2 = nn.dot %y, %u batch [0] x [0] contract [1] x [1] : tensor<3x5x7xf32>, tensor<3x5x2x4xf32> -> tensor<3x7x2x4xf32>
  return %0, %1, %2 : tensor<4x7x2x3xf32>, tensor<4x7x3x2xf32>, tensor<3x7x2x4xf32>
}

// A weight that is not trained is turned when the model is loaded.
// CHECK-LABEL: func.func @constant
// CHECK: nn.transpose
func.func @constant(%x: tensor<2x4xf32>) -> tensor<2x9xf32> {
  %w = nn.parameter @c : tensor<9x4xf32>
  %t = nn.transpose %w [1, 0] : tensor<9x4xf32> -> tensor<4x9xf32>
  %0 = nn.dot %x, %t batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x9xf32> -> tensor<2x9xf32>
  return %0 : tensor<2x9xf32>
}

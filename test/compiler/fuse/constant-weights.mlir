// RUN: partita-opt %s --fuse-clusters --form-clusters | FileCheck %s

// A library reads weights and biases in memory; the bound of the clip is a
// number of the call.
// CHECK-LABEL: func.func @constant_weights
// CHECK: %[[W:.*]] = nn.cluster
// CHECK: nn.constant dense<{{\[\[}}1.0
// CHECK: %[[B:.*]] = nn.cluster
// CHECK: nn.constant dense<[5.0
// CHECK: nn.cluster call (%{{.*}} = %{{.*}}, %[[A1:.*]] = %[[W]], %[[A2:.*]] = %[[B]])
// CHECK-NOT: nn.constant dense<[
// CHECK: nn.constant dense<6.0
// CHECK: nn.dot
// CHECK: nn.add
// CHECK: nn.min
func.func @constant_weights(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %w = nn.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = nn.constant dense<[5.0, 7.0]> : tensor<2xf32>
  %six = nn.constant dense<6.0> : tensor<8x2xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x2xf32>, tensor<2x2xf32> -> tensor<8x2xf32>
  %1 = nn.broadcast %b [1] : tensor<2xf32> -> tensor<8x2xf32>
  %2 = nn.add %0, %1 : tensor<8x2xf32>
  %3 = nn.min %2, %six : tensor<8x2xf32>
  return %3 : tensor<8x2xf32>
}

// RUN: partita-opt %s --nn-delay-broadcasts | FileCheck %s

// CHECK-LABEL: func.func @same_dims
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK: %[[M:.*]] = nn.mul %[[A]], %[[B]] : tensor<4xf32>
// CHECK: %[[R:.*]] = nn.broadcast %[[M]] [1] : tensor<4xf32> -> tensor<2x4xf32>
// CHECK: return %[[R]]
func.func @same_dims(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = nn.broadcast %a [1] : tensor<4xf32> -> tensor<2x4xf32>
  %1 = nn.broadcast %b [1] : tensor<4xf32> -> tensor<2x4xf32>
  %2 = nn.mul %0, %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// A uniform constant follows.
// CHECK-LABEL: func.func @uniform
// CHECK: nn.compare lt %{{.*}}, %{{.*}} : tensor<4xf32> -> tensor<4xi1>
// CHECK: nn.broadcast %{{.*}} [1] : tensor<4xi1> -> tensor<2x4xi1>
func.func @uniform(%a: tensor<4xf32>) -> tensor<2x4xi1> {
  %c = nn.constant dense<2.0> : tensor<2x4xf32>
  %0 = nn.broadcast %a [1] : tensor<4xf32> -> tensor<2x4xf32>
  %1 = nn.compare lt %0, %c : tensor<2x4xf32> -> tensor<2x4xi1>
  return %1 : tensor<2x4xi1>
}

// CHECK-LABEL: func.func @other_dims
// CHECK: nn.add %{{.*}}, %{{.*}} : tensor<4x4xf32>
func.func @other_dims(%a: tensor<4xf32>) -> tensor<4x4xf32> {
  %0 = nn.broadcast %a [0] : tensor<4xf32> -> tensor<4x4xf32>
  %1 = nn.broadcast %a [1] : tensor<4xf32> -> tensor<4x4xf32>
  %2 = nn.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

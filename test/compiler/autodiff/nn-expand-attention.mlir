// RUN: partita-opt --nn-expand-attention %s | FileCheck %s

// CHECK-LABEL: @masked
// CHECK: nn.dot %arg0, %arg1 batch [0, 1] x [0, 1] contract [3] x [3]
// CHECK: nn.mul
// CHECK: nn.broadcast %arg3
// CHECK: nn.add
// CHECK: nn.softmax %{{.*}} dim 3 : tensor<1x2x3x5xf32>
// CHECK: nn.dot %{{.*}}, %arg2 batch [0, 1] x [0, 1] contract [3] x [2]
// CHECK-NOT: nn.attention
func.func @masked(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x2x5x6xf32>, %m: tensor<1x1x1x5xf32>) -> tensor<1x2x3x6xf32> {
  %0 = nn.attention %q, %k, %v mask_add %m : tensor<1x1x1x5xf32> scale 0.5
    : tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x6xf32> -> tensor<1x2x3x6xf32>
  return %0 : tensor<1x2x3x6xf32>
}

// RUN: partita-opt %s --fuse-clusters --form-clusters | FileCheck %s

// What weights determine is computed by each device that reads it. A device
// may read the product alone: so its kernel does not also make the other
// result.
// CHECK-LABEL: func.func @one_result
// CHECK: %[[C:.*]] = nn.cluster kernel {{.*}} -> tensor<3x8xf32>
// CHECK: nn.abs
// CHECK: nn.yield
// CHECK: nn.cluster kernel (%{{.*}} = %[[C]]) : (tensor<3x8xf32>) -> tensor<f32>
// CHECK-NOT: nn.abs
// CHECK: nn.reduce prod
nn.weight @w "w" : tensor<3x8xf32> = dense<1.0> : tensor<3x8xf32>
func.func @one_result(%x: tensor<f32>) -> (tensor<3x8xf32>, tensor<f32>) {
  %w = nn.parameter @w : tensor<3x8xf32>
  %0 = nn.abs %w : tensor<3x8xf32>
  %1 = nn.reduce prod %0 [0, 1] : tensor<3x8xf32> -> tensor<f32>
  %2 = nn.add %1, %x : tensor<f32>
  return %0, %2 : tensor<3x8xf32>, tensor<f32>
}

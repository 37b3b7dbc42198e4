// RUN: partita-opt --form-clusters %s | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8xf32>) -> tensor<2x4xf32> {
  // The constant goes inside, the reshape stays an alias.
  // CHECK: %[[A:.*]] = nn.cluster kernel (%{{.*}} = %{{.*}}) : (tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: nn.constant
  // CHECK-NEXT: nn.mul
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: nn.yield
  // CHECK: %[[R:.*]] = nn.reshape %[[A]]
  // CHECK: %[[B:.*]] = nn.cluster kernel (%{{.*}} = %[[R]])
  // CHECK-NEXT: nn.exp
  // CHECK: return %[[B]]
  %c = nn.constant dense<2.0> : tensor<8xf32>
  %0 = nn.mul %x, %c {nn.cluster = #nn.cluster<3, kernel>} : tensor<8xf32>
  %1 = nn.relu %0 {nn.cluster = #nn.cluster<3, kernel>} : tensor<8xf32>
  %2 = nn.reshape %1 : tensor<8xf32> -> tensor<2x4xf32>
  %3 = nn.exp %2 : tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @constant
func.func @constant() -> tensor<2xf32> {
  // CHECK: nn.cluster
  // CHECK-NEXT: nn.constant
  %c = nn.constant dense<2.0> : tensor<2xf32>
  return %c : tensor<2xf32>
}

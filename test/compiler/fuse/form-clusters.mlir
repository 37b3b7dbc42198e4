// RUN: partita-opt --form-clusters %s | FileCheck %s
// RUN: partita-opt --form-clusters %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=NAMES

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

// A cluster stands where its last op stood, unless something before that reads it; all others stay in their order.
// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  // CHECK: nn.sin
  // CHECK: %[[A:.*]]:2 = nn.cluster
  // CHECK: nn.cluster kernel (%{{.*}} = %[[A]]#0)
  // CHECK-NEXT: nn.exp
  // CHECK: nn.tanh
  // CHECK: nn.sqrt
  %0 = nn.neg %x {nn.cluster = #nn.cluster<0, kernel>} : tensor<8xf32>
  %1 = nn.sin %y : tensor<8xf32>
  %2 = nn.exp %0 : tensor<8xf32>
  %3 = nn.tanh %1 : tensor<8xf32>
  %4 = nn.mul %0, %y {nn.cluster = #nn.cluster<0, kernel>} : tensor<8xf32>
  %5 = nn.sqrt %y : tensor<8xf32>
  return %2, %3, %4, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @constant
func.func @constant() -> tensor<2xf32> {
  // CHECK: nn.cluster
  // CHECK-NEXT: nn.constant
  %c = nn.constant dense<2.0> : tensor<2xf32>
  return %c : tensor<2xf32>
}

// A constant that nodes share, and what is made of it, has the name of the first of them; clusters have the names of what they compute.
// NAMES-LABEL: func.func @shared
func.func @shared(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // NAMES: nn.add {{.*}} loc("norm1/add"("layer.0"))
  // NAMES: } loc("norm1/add"("layer.0"))
  // NAMES: nn.broadcast {{.*}} loc("norm1/epsilon")
  // NAMES: } loc(fused["norm2/add"("layer.1"), "norm2/sqrt"("layer.1"), "norm2/move"("layer.1")])
  %e = nn.constant dense<1.0> : tensor<1xf32> loc("norm1/epsilon")
  %b0 = nn.broadcast %e [1] {nn.cluster = #nn.cluster<0, kernel>} : tensor<1xf32> -> tensor<4x8xf32> loc("norm1/epsilon")
  %0 = nn.add %x, %b0 {nn.cluster = #nn.cluster<0, kernel>} : tensor<4x8xf32> loc("norm1/add"("layer.0"))
  %b1 = nn.broadcast %e [1] {nn.cluster = #nn.cluster<1, kernel>} : tensor<1xf32> -> tensor<4x8xf32> loc("norm1/epsilon")
  %m = nn.reverse %0 [1] {nn.cluster = #nn.cluster<1, kernel>} : tensor<4x8xf32> loc("norm2/move"("layer.1"))
  %1 = nn.add %m, %b1 {nn.cluster = #nn.cluster<1, kernel>} : tensor<4x8xf32> loc("norm2/add"("layer.1"))
  %2 = nn.sqrt %1 {nn.cluster = #nn.cluster<1, kernel>} : tensor<4x8xf32> loc("norm2/sqrt"("layer.1"))
  return %0, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// A state is written behind what reads its old value, so that both may lie in one place.
// CHECK-LABEL: func.func @updated
nn.weight state @s "s" : tensor<2x4xf32> = dense<0.0> : tensor<2x4xf32> {nn.role = "carried"}
func.func @updated(%x: tensor<2x1xf32>, %p: tensor<2xi64>) -> (tensor<4x2xf32>, tensor<2x4xf32>) {
  // CHECK: nn.sin
  // CHECK: nn.update_slice
  %s = nn.parameter state @s {nn.carried} : tensor<2x4xf32>
  %0 = nn.update_slice %s, %x, %p dim 1 : tensor<2x4xf32>, tensor<2x1xf32>, tensor<2xi64>
  %r = nn.reshape %s : tensor<2x4xf32> -> tensor<4x2xf32>
  %1 = nn.sin %r : tensor<4x2xf32>
  return %1, %0 : tensor<4x2xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @updated_and_read
nn.weight state @t "t" : tensor<2x4xf32> = dense<0.0> : tensor<2x4xf32> {nn.role = "carried"}
func.func @updated_and_read(%x: tensor<2x1xf32>, %p: tensor<2xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK: nn.update_slice
  // CHECK: nn.cos
  // CHECK: nn.sin
  %s = nn.parameter state @t {nn.carried} : tensor<2x4xf32>
  %0 = nn.update_slice %s, %x, %p dim 1 : tensor<2x4xf32>, tensor<2x1xf32>, tensor<2xi64>
  %1 = nn.cos %0 : tensor<2x4xf32>
  %2 = nn.sin %s : tensor<2x4xf32>
  return %1, %2, %0 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// Two that read each other's old values stay.
// CHECK-LABEL: func.func @updated_twice
nn.weight state @u "u" : tensor<2x4xf32> = dense<0.0> : tensor<2x4xf32> {nn.role = "carried"}
func.func @updated_twice(%x: tensor<2x1xf32>, %y: tensor<2x1xf32>, %p: tensor<2xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK-COUNT-2: nn.update_slice
  %s = nn.parameter state @u {nn.carried} : tensor<2x4xf32>
  %0 = nn.update_slice %s, %x, %p dim 1 : tensor<2x4xf32>, tensor<2x1xf32>, tensor<2xi64>
  %1 = nn.update_slice %s, %y, %p dim 1 : tensor<2x4xf32>, tensor<2x1xf32>, tensor<2xi64>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

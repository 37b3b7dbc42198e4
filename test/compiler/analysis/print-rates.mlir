// RUN: partita-opt --print-rates %s | FileCheck %s

// An op has the largest rate of its operands.
// CHECK-LABEL: @rates
func.func @rates(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: nn.parameter @w {rate = "load"}
  %w = nn.parameter @w : tensor<4xf32>
  // CHECK: nn.parameter state @s {rate = "step"}
  %s = nn.parameter state @s : tensor<4xf32>
  // CHECK: nn.constant {{.*}}rate = "load"
  %c = nn.constant dense<2.0> : tensor<4xf32>
  // CHECK: nn.mul %0, %{{.*}}rate = "load"
  %0 = nn.mul %w, %c : tensor<4xf32>
  // CHECK: nn.mul %{{.*}}rate = "step"
  %1 = nn.mul %0, %s : tensor<4xf32>
  // CHECK: nn.add %arg0, %{{.*}}rate = "micro-batch"
  %2 = nn.add %x, %1 : tensor<4xf32>
  // CHECK: nn.sub %{{.*}}, %0 {rate = "micro-batch"}
  %3 = nn.sub %2, %w : tensor<4xf32>
  return %3 : tensor<4xf32>
}
nn.weight @w "w" : tensor<4xf32> = dense<0.0> : tensor<4xf32>
nn.weight state @s "s" : tensor<4xf32> = dense<0.0> : tensor<4xf32>

// Inside a cluster an argument has the rate of its operand; a result has that
// of what is yielded, which is less than that of the largest operand here.
// CHECK-LABEL: @inside
func.func @inside(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: nn.parameter @w
  %w = nn.parameter @w : tensor<4xf32>
  %0:2 = nn.cluster kernel (%a = %x, %b = %w) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: nn.exp {{.*}}rate = "micro-batch"
    %1 = nn.exp %a : tensor<4xf32>
    // CHECK: nn.exp {{.*}}rate = "load"
    %2 = nn.exp %b : tensor<4xf32>
    nn.yield %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
  // CHECK: nn.tanh {{.*}}#0 {rate = "micro-batch"}
  %3 = nn.tanh %0#0 : tensor<4xf32>
  // CHECK: nn.tanh {{.*}}#1 {rate = "load"}
  %4 = nn.tanh %0#1 : tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}

// What has an effect is computed each time.
// CHECK-LABEL: @effect
func.func @effect() -> tensor<4xf32> {
  // CHECK: call @rates_of_others() {rate = "micro-batch"}
  %0 = call @rates_of_others() : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @rates_of_others() -> tensor<4xf32>

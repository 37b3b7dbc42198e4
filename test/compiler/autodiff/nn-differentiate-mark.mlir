// RUN: partita-opt --nn-differentiate=mark=true --mlir-print-debuginfo --mlir-print-local-scope %s | FileCheck %s

// What "c" gives back is the cotangent of the result of "b". Both ops of "b"
// are one node, so what its second one gives back is that of no tensor, and
// what the first one does is that of "a".
// CHECK: nn.tanh %{{.*}} loc("a")
// CHECK: nn.exp %{{.*}} loc("b")
// CHECK: nn.tanh %{{.*}} loc("b")
// CHECK: nn.mul %{{.*}} loc("c")
// CHECK: %[[C:.*]] = nn.add %{{.*}} loc(fused<["b"]>["c"])
// CHECK: nn.sub %{{.*}} loc(fused<[]>["b"])
// CHECK: %[[B:.*]] = nn.mul %[[C]], %{{.*}} loc(fused<[]>["b"])
// CHECK: nn.mul %[[B]], %{{.*}} loc(fused<["a"]>["b"])
// CHECK: nn.mul %{{.*}} loc(fused<[]>["a"])
nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.parameter @w : tensor<4xf32>
  %a = nn.tanh %w : tensor<4xf32> loc("a")
  %b = nn.exp %a : tensor<4xf32> loc("b")
  %c = nn.tanh %b : tensor<4xf32> loc("b")
  %d = nn.mul %c, %c : tensor<4xf32> loc("c")
  %e = nn.reduce sum %d [0] : tensor<4xf32> -> tensor<f32> loc("loss")
  return %e : tensor<f32>
}

// RUN: partita-opt --expose-values %s | FileCheck %s

// Of the derivative, the cotangents of the results of nodes: that of "a" leaves
// its cluster, and is that of "b" as well; what lies within the derivative of
// "b" is no tensor's. The op that gives "a" its name is the model's.
// CHECK: -> (tensor<8xf32> {nn.name = "loss", nn.port = 0 : i64}
// CHECK-SAME: tensor<8xf32> {nn.batch_axis = 0 : i64, nn.name = "x", nn.node = "a", nn.port = 1 : i64}
// CHECK-SAME: tensor<8xf32> {nn.batch_axis = 0 : i64, nn.name = "x.grad", nn.node = "a", nn.port = 2 : i64})
module attributes {nn.nodes = ["a", "b", "c"], nn.node_outputs = ["x", "y", "z"]} {
  func.func @main(%arg0: tensor<8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<8xf32> {nn.name = "loss", nn.port = 0 : i64}) {
    // CHECK: %[[X:.*]] = nn.exp
    %0 = nn.exp %arg0 {nn.cluster = #nn.cluster<0, kernel>} : tensor<8xf32> loc("a")
    %1 = nn.tanh %0 {nn.cluster = #nn.cluster<1, kernel>} : tensor<8xf32> loc(fused<[]>["b"])
    // CHECK: %[[CLOSE:.*]] = nn.exp
    %2 = nn.exp %1 {nn.cluster = #nn.cluster<1, kernel>} : tensor<8xf32> loc(fused<["a", "b"]>["c"])
    // CHECK: %[[LOSS:.*]] = nn.tanh
    %3 = nn.tanh %2 {nn.cluster = #nn.cluster<2, kernel>} : tensor<8xf32> loc(fused<[]>["a"])
    // CHECK: return %[[LOSS]], %[[X]], %[[CLOSE]]
    return %3 : tensor<8xf32>
  }
}

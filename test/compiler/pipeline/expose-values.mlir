// RUN: partita-opt --expose-values %s | FileCheck %s
// RUN: partita-opt --expose-values="nodes=a" %s 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not partita-opt --expose-values="nodes=z*" %s 2>&1 | FileCheck %s --check-prefix=NONE

// Of cluster 0 only what leaves it: %1, which "b" makes; "d" is an output
// already.
// ONE: remark: 0 inner values are outputs; 1 nodes' results exist only within
// NONE: error: --expose z* names no node that is computed in a step

module attributes {nn.nodes = ["a", "b", "c", "d"], nn.node_outputs = ["x", "y", "", "z"]} {
  // CHECK: func.func @main(
  // CHECK-SAME: -> (tensor<8xf32> {nn.name = "z", nn.port = 0 : i64}, tensor<8xf32> {nn.batch_axis = 0 : i64, nn.name = "y", nn.node = "b", nn.port = 1 : i64})
  func.func @main(%arg0: tensor<8xf32> {nn.batch_axis = 0 : i64}) -> (tensor<8xf32> {nn.name = "z", nn.port = 0 : i64}) {
    %0 = nn.exp %arg0 {nn.cluster = #nn.cluster<0, kernel>} : tensor<8xf32> loc("a")
    %1 = nn.tanh %0 {nn.cluster = #nn.cluster<0, kernel>} : tensor<8xf32> loc("b")
    %2 = nn.exp %1 {nn.cluster = #nn.cluster<1, kernel>} : tensor<8xf32> loc("c")
    %3 = nn.tanh %2 {nn.cluster = #nn.cluster<2, kernel>} : tensor<8xf32> loc("d")
    // CHECK: return %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>
    return %3 : tensor<8xf32>
  }
}

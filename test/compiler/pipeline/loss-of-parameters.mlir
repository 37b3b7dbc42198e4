// RUN: partita-opt %s --nn-add-loss="loss=sum:y" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=2" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=devices=2 --dist-assign-stages --dist-form-stages | FileCheck %s

// No sample has a part in this loss, so a micro-batch computes nothing of it.
// CHECK-NOT: dist.stage "F{{.*}} on @d1
// CHECK: dist.stage "F0" 0 on @d0
// CHECK: dist.stage "U0" 0 phase update on @d0
// CHECK: nn.parameter state @w
// CHECK-NOT: dist.stage "U1"

module attributes {nn.model = "m", nn.nodes = ["a"]} {
  nn.weight @w "w" : tensor<3xf32> in "w.bin" at 0 bytes 12 {nn.trained}
  func.func @main(%x: tensor<2x4xf32> {nn.name = "x", nn.batch_axis = 0}) -> (tensor<3xf32> {nn.name = "y"}) {
    %w = nn.parameter @w : tensor<3xf32>
    %y = nn.tanh %w : tensor<3xf32> loc("a")
    return %y : tensor<3xf32>
  }
}

// RUN: partita-opt %s --nn-add-loss="loss=sum:y parts" --nn-differentiate --nn-sum-gradients=micro-batches=2 --nn-form-accumulators --fuse-clusters --dist-assign-blocks=devices=4 --dist-assign-stages --dist-form-stages | FileCheck %s

// The gradient of 'w' needs a sum of one part of "norm", and is computed
// together with another part, before the loss is. So the sum lies between parts
// of one node, and no stage parts them.
// CHECK: dist.stage "F0" 0 on @d0
// CHECK: nn.cos
// CHECK: dist.stage "F1" 1 on @d1
// CHECK-COUNT-3: nn.reduce
// CHECK: dist.stage "F2" 2 on @d2
// CHECK: nn.concat
// CHECK-NOT: dist.stage "F3"
module attributes {nn.model = "m", nn.nodes = ["other", "norm", "y"]} {
  nn.weight @w "w" : tensor<4xf32> in "w.bin" at 0 bytes 16 {nn.trained}
  nn.weight @k "k" : tensor<48x4xf32> in "w.bin" at 16 bytes 768 {nn.untrained = "it is constant"}
  func.func @main(%x: tensor<48x4xf32> {nn.name = "x"}, %z: tensor<64xf32> {nn.name = "z"}) -> (tensor<260xf32> {nn.name = "y"}) {
    %w = nn.parameter @w : tensor<4xf32>
    %k = nn.parameter @k : tensor<48x4xf32>
    %other = nn.cos %z : tensor<64xf32> loc("other")
    %sum = nn.reduce sum %x [0] : tensor<48x4xf32> -> tensor<4xf32> loc("norm")
    %scale = nn.constant dense<0.020833334> : tensor<4xf32>
    %mean = nn.mul %sum, %scale : tensor<4xf32> loc("norm")
    %means = nn.broadcast %mean [1] : tensor<4xf32> -> tensor<48x4xf32> loc("norm")
    %away = nn.sub %x, %means : tensor<48x4xf32> loc("norm")
    %squares = nn.mul %away, %away : tensor<48x4xf32> loc("norm")
    %squared = nn.reduce sum %squares [0] : tensor<48x4xf32> -> tensor<4xf32> loc("norm")
    %inverse = nn.rsqrt %squared : tensor<4xf32> loc("norm")
    %factor = nn.mul %w, %inverse : tensor<4xf32> loc("norm")
    %factors = nn.broadcast %factor [1] : tensor<4xf32> -> tensor<48x4xf32> loc("norm")
    %normed = nn.mul %away, %factors : tensor<48x4xf32> loc("norm")
    %weighed = nn.mul %normed, %k : tensor<48x4xf32> loc("norm")
    %flat = nn.reshape %weighed : tensor<48x4xf32> -> tensor<192xf32> loc("norm")
    %y = nn.concat %other, %flat, %squared dim 0 : (tensor<64xf32>, tensor<192xf32>, tensor<4xf32>) -> tensor<260xf32> loc("y")
    return %y : tensor<260xf32>
  }
}

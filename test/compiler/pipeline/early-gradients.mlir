// RUN: partita-opt %s --nn-add-loss="loss=nll:y,ignore_index=1 parts" --nn-differentiate --nn-sum-gradients=micro-batches=2 --nn-form-accumulators --fuse-clusters --dist-assign-blocks=devices=2 --dist-assign-stages --dist-form-stages | FileCheck %s

// The gradient of 'w' depends on labels alone, and shares a kernel with "scale".
// So forward computes it, and counts the labels. Sums over micro-batches are
// zero once a step all the same.
// CHECK-COUNT-3: nn.accumulator
// CHECK: dist.stage "F0" 0 on @d0
// CHECK-SAME: dist.sums
// CHECK-NOT: nn.accumulator
module attributes {nn.model = "m", nn.nodes = ["scale", "join", "rows"]} {
  nn.weight @w "w" : tensor<18xf32> in "w.bin" at 0 bytes 72 {nn.trained}
  func.func @main(%x: tensor<12xf32> {nn.name = "x"}, %z: tensor<18xf32> {nn.name = "z"}) -> (tensor<10x3xf32> {nn.name = "y"}) {
    %w = nn.parameter @w : tensor<18xf32>
    %sum = nn.reduce sum %z [0] : tensor<18xf32> -> tensor<f32> loc("scale")
    %rows = nn.broadcast %sum [] : tensor<f32> -> tensor<18xf32> loc("scale")
    %away = nn.sub %z, %rows : tensor<18xf32> loc("scale")
    %scaled = nn.mul %away, %w : tensor<18xf32> loc("scale")
    %joined = nn.concat %x, %scaled dim 0 : (tensor<12xf32>, tensor<18xf32>) -> tensor<30xf32> loc("join")
    %y = nn.reshape %joined : tensor<30xf32> -> tensor<10x3xf32> loc("rows")
    return %y : tensor<10x3xf32>
  }
}

// RUN: split-file %s %t
// RUN: partita-compile %t/model.mlir --loss mse:y --optimizer sgd --micro-batches 3 --partition %t/split.yaml --emit stages > %t/stages 2> %t/said
// RUN: FileCheck %t/model.mlir < %t/stages
// RUN: FileCheck %t/model.mlir --check-prefix=SAID --allow-empty < %t/said

//--- split.yaml
blocks: {A: [a, b], B: [y]}

//--- model.mlir
// The second stage reads `b` twice: with its channels last, and transposed for a
// gradient. It gets `b` once, and transposes it itself.
// CHECK: dist.stage "F0" 0 on @d0
// CHECK: dist.transfer %{{.*}} reason "F0 on d0 makes it, F1 on d1 reads it"
// CHECK-NEXT: = dist.stage "F1" 1 on @d1
// CHECK: nn.transpose %{{.*}} [0, 3, 1, 2]

// Nobody has to say where the loss is.
// SAID-NOT: remark
nn.weight @v "v" : tensor<8x8x3x3xf32> = dense<0.5> : tensor<8x8x3x3xf32> {nn.trained}
nn.weight @w "w" : tensor<8x8x3x3xf32> = dense<0.5> : tensor<8x8x3x3xf32> {nn.trained}
func.func @main(%x: tensor<2x8x12x12xf32> {nn.name = "x", nn.port = 0 : i64}) -> (tensor<2x8x8x8xf32> {nn.name = "y", nn.port = 0 : i64}) {
  %v = nn.parameter @v : tensor<8x8x3x3xf32>
  %w = nn.parameter @w : tensor<8x8x3x3xf32>
  %a = nn.conv %x, %v channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1 : tensor<2x8x12x12xf32>, tensor<8x8x3x3xf32> -> tensor<2x8x10x10xf32>
  %b = nn.relu %a : tensor<2x8x10x10xf32>
  %y = nn.conv %b, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1 : tensor<2x8x10x10xf32>, tensor<8x8x3x3xf32> -> tensor<2x8x8x8xf32>
  return %y : tensor<2x8x8x8xf32>
}

// RUN: partita-opt --nn-mark-states %s | FileCheck %s

// CHECK: dist.full_micro_batches
// CHECK: nn.weight state @w "w"
// CHECK: nn.weight @v "v"
// CHECK: nn.parameter state @w
// CHECK: nn.parameter @v
nn.weight @w "w" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.trained}
nn.weight @v "v" : tensor<4xf32> = dense<1.0> : tensor<4xf32> {nn.untrained = "--freeze names it"}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = nn.parameter @w : tensor<4xf32>
  %v = nn.parameter @v : tensor<4xf32>
  %0 = nn.add %w, %v : tensor<4xf32>
  %1 = nn.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

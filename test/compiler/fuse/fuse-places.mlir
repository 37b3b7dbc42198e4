// Of what is decided before tensors are cut, and of what behind: the IR says
// whether any number may depend on how they are cut.
//
// RUN: partita-opt --fuse-clusters=place=before-cuts %s | FileCheck %s --check-prefixes=SAME,NOT-CUT
// RUN: partita-opt --fuse-clusters=place=behind-cuts %s | FileCheck %s --check-prefixes=NOT-SAME,CUT
// RUN: partita-opt --fuse-clusters=place=own-targets %s | FileCheck %s --check-prefixes=NOT-SAME,NOT-CUT
// RUN: partita-opt --fuse-clusters %s | FileCheck %s --check-prefixes=SAME,CUT

// SAME-LABEL: @same_bits
// SAME: nn.conv {{.*}}nn.cluster = #nn.cluster<0, call>
// SAME-NOT: nn.winograd
// NOT-SAME-LABEL: @same_bits
// NOT-SAME-NOT: nn.cluster
// CUT-LABEL: @fast
// CUT: nn.conv {{.*}}nn.cluster = #nn.cluster<0, call>{{.*}}nn.winograd
// NOT-CUT-LABEL: @fast
// NOT-CUT-NOT: nn.cluster
func.func @same_bits(%x: tensor<4x64x64x64xf32>) -> tensor<4x64x64x64xf32> attributes {dist.reproducible} {
  %w = nn.parameter @w : tensor<64x64x3x3xf32>
  %0 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<4x64x64x64xf32>, tensor<64x64x3x3xf32> -> tensor<4x64x64x64xf32>
  return %0 : tensor<4x64x64x64xf32>
}
func.func @fast(%x: tensor<4x64x64x64xf32>) -> tensor<4x64x64x64xf32> {
  %w = nn.parameter @w : tensor<64x64x3x3xf32>
  %0 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<4x64x64x64xf32>, tensor<64x64x3x3xf32> -> tensor<4x64x64x64xf32>
  return %0 : tensor<4x64x64x64xf32>
}
nn.weight @w "w" : tensor<64x64x3x3xf32> = dense<0.0> : tensor<64x64x3x3xf32>

// RUN: partita-opt %s --nn-simplify --fuse-clusters | FileCheck %s --check-prefix=FUSED --implicit-check-not=nn.winograd
// RUN: partita-opt %s --nn-simplify --fuse-clusters --dist-assign-blocks=devices=2 --dist-assign-stages --dist-form-stages --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=PLAN --implicit-check-not="plan.load {"
// RUN: sed "s/ state / /" %s | partita-opt --nn-simplify --fuse-clusters | FileCheck %s --check-prefix=WEIGHTS
// RUN: sed "s/ state / /" %s | partita-opt --nn-simplify --fuse-clusters --dist-assign-blocks=devices=1 --dist-assign-stages --dist-form-stages --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=LOADED

// A weight that a step writes: its scale stays behind the convolution, which is
// computed directly.
// FUSED: nn.conv %{{.*}}, %[[W:[0-9]+]] channels_last
// FUSED: nn.mul
// FUSED: nn.dot
// The same as a weight that nobody writes.
// WEIGHTS: nn.mul %{{.*}} : tensor<64x64x3x3xf32>
// WEIGHTS: nn.conv {{.*}}nn.winograd
// WEIGHTS-NOT: nn.mul

// Nothing of it is packed or computed at load. The convolution reads the state
// itself, and a prologue computes exp once a step.
// PLAN: plan.program @program0 {{.*}} constant 0 {{.*}} packed 0
// PLAN: plan.slot state @w
// PLAN: plan.unit @F0
// PLAN: plan.call <conv
// PLAN: plan.program @program1 {{.*}} constant 0 {{.*}} packed 0
// PLAN: plan.slot state @u
// PLAN: plan.slot arena span step
// PLAN: plan.unit @P1
// PLAN: plan.dispatch <"{{.*}}exp"
// PLAN: plan.unit @F1
// PLAN: plan.run @P1 micro_batch 0
// PLAN: plan.run @F1 micro_batch 0
// LOADED: plan.program @program0 {{.*}} packed {{[1-9]}}
// LOADED: plan.load {
// LOADED: plan.unit
func.func @main(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x56x8xf32> {
  %w = nn.parameter state @w : tensor<64x64x3x3xf32>
  %s = nn.parameter state @s : tensor<64xf32>
  %u = nn.parameter state @u : tensor<56x8xf32>
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32> -> tensor<1x64x56x56xf32>
  %1 = nn.broadcast %s [1] : tensor<64xf32> -> tensor<1x64x56x56xf32>
  %2 = nn.mul %0, %1 : tensor<1x64x56x56xf32>
  %3 = nn.exp %u : tensor<56x8xf32>
  %4 = nn.dot %2, %3 batch [] x [] contract [3] x [0] : tensor<1x64x56x56xf32>, tensor<56x8xf32> -> tensor<1x64x56x8xf32>
  return %4 : tensor<1x64x56x8xf32>
}
nn.weight state @w "w" : tensor<64x64x3x3xf32> = dense<0.0> : tensor<64x64x3x3xf32>
nn.weight state @s "s" : tensor<64xf32> = dense<1.0> : tensor<64xf32>
nn.weight state @u "u" : tensor<56x8xf32> = dense<1.0> : tensor<56x8xf32>

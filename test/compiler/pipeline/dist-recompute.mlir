// RUN: partita-opt %s --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=3" --nn-form-accumulators --fuse-clusters --mlir-print-debuginfo -o %t
// RUN: partita-opt %t --dist-assign-blocks=devices=2 --dist-assign-stages --dist-recompute=kind=standard -o %t.standard
// RUN: FileCheck %s --check-prefix=STANDARD < %t.standard
// RUN: partita-opt %t.standard --dist-form-stages --form-clusters -o %t.stages
// RUN: FileCheck %s --check-prefix=STAGES < %t.stages
// RUN: partita-opt %t.stages --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=PLAN
// RUN: partita-opt %t --dist-assign-blocks=devices=2 --dist-assign-stages --dist-recompute=kind=full --dist-form-stages | FileCheck %s --check-prefix=FULL
// RUN: partita-opt %t "--dist-assign-blocks=devices=2 schedule=zb_h1" --dist-assign-stages --dist-recompute=kind=full --dist-form-stages | FileCheck %s --check-prefix=SPLIT
// RUN: partita-opt %t --dist-assign-blocks=devices=2 --dist-assign-stages --dist-recompute=nodes=squa* | FileCheck %s --check-prefix=NODES
// RUN: partita-opt %t --dist-assign-blocks=devices=2 --dist-assign-stages --dist-recompute | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt %t --dist-assign-blocks=devices=2 --dist-assign-stages --dist-recompute=nodes=sqaure 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not partita-opt %t --dist-assign-blocks=devices=2 --dist-assign-stages --dist-recompute=kind=most 2>&1 | FileCheck %s --check-prefix=KIND

// Two wide values, the sine and the cosine, follow from a narrow one, which is
// kept instead of them. The cosine is not computed before it is needed.
// STANDARD: dist.recomputation = {all = {{[0-9]+}} : i64, kept = {{[0-9]+}} : i64, nodes = 2 : i64, work = {{[0-9.e+]+}} : f64}
// STANDARD: %[[NARROW:.*]] = nn.dot
// STANDARD: nn.sin {{.*}}#nn.cluster<[[#NUMBER:]], kernel>, nn.yielded = array<i64: 0>
// STANDARD-NOT: nn.cos
// STANDARD: nn.broadcast %[[NARROW]] {{.*}}dist.recomputed
// STANDARD: nn.sin {{.*}}dist.recomputed{{.*}}#nn.cluster<[[#AGAIN:]], kernel>, nn.yielded = array<i64: 0>
// STANDARD-NOT: nn.dot {{.*}}dist.recomputed
// STANDARD: nn.cos {{.*}}dist.recomputed

// The clone is computed in the backward of its stage.
// STAGES: dist.stage "F0"
// STAGES-NOT: dist.recomputed
// STAGES: dist.stage "F1"
// STAGES-NOT: dist.recomputed
// STAGES: dist.stage "B0"
// STAGES: nn.cluster{{.*}}dist.recomputed
// STAGES: dist.stage "U1"

// PLAN: plan.model
// PLAN-SAME: dist.recomputation

// FULL: dist.stage "B0"
// FULL: nn.dot {{.*}}dist.recomputed
// FULL: dist.stage "U1"

// SPLIT: dist.stage "I1"
// SPLIT-NOT: dist.recomputed
// SPLIT: dist.stage "W0"
// SPLIT: dist.recomputed
// SPLIT: dist.stage "U1"

// NODES: dist.recomputed

// NONE: nodes = 0
// NONE-NOT: dist.recomputed

// UNKNOWN: --recompute-nodes sqaure names no node; did you mean 'square'?
// KIND: there is no recomputation 'most': it is none, standard or full

nn.weight @w0 "w0" : tensor<16x4xf32> = dense<0.5> : tensor<16x4xf32> {nn.trained}
nn.weight @w1 "w1" : tensor<64x16xf32> = dense<0.5> : tensor<64x16xf32> {nn.trained}
nn.weight @w2 "w2" : tensor<16x16xf32> = dense<0.5> : tensor<16x16xf32> {nn.trained}
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", nn.port = 0 : i64}) -> (tensor<8x16xf32> {nn.name = "y", nn.port = 0 : i64}) {
  %w0 = nn.parameter @w0 : tensor<16x4xf32>
  %w1 = nn.parameter @w1 : tensor<64x16xf32>
  %w2 = nn.parameter @w2 : tensor<16x16xf32>
  %0 = nn.dot %x, %w0 batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x4xf32> -> tensor<8x4xf32> loc("first")
  %1 = nn.broadcast %0 [0, 1] : tensor<8x4xf32> -> tensor<8x4x16xf32> loc("widen")
  %2 = nn.reshape %1 : tensor<8x4x16xf32> -> tensor<8x64xf32> loc("widen")
  %3 = nn.sin %2 : tensor<8x64xf32> loc("square")
  %4 = nn.dot %3, %w1 batch [] x [] contract [1] x [0] : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32> loc("second")
  %5 = nn.tanh %4 : tensor<8x16xf32> loc("second")
  %6 = nn.dot %5, %w2 batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32> loc("third")
  return %6 : tensor<8x16xf32>
}

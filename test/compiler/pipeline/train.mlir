// RUN: partita-opt %s --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=3" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=devices=2 --dist-assign-stages --dist-form-stages -o %t
// RUN: FileCheck %s --check-prefix=STAGES < %t
// RUN: partita-opt %t --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=PLAN
// RUN: partita-opt %s --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=3" --nn-form-accumulators --fuse-clusters "--dist-assign-blocks=devices=2 schedule=zb_h1" --dist-assign-stages --dist-form-stages -o %t.split
// RUN: FileCheck %s --check-prefix=SPLIT < %t.split
// RUN: partita-opt %t.split --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=ORDER
// RUN: partita-opt %s --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=3" --nn-form-accumulators --fuse-clusters "--dist-assign-blocks=devices=1 schedule=zb_v stages=2" --dist-assign-stages --dist-form-stages | FileCheck %s --check-prefix=FOLDED
// RUN: partita-opt %s --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=3" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=devices=1 --dist-assign-stages --dist-form-stages --form-clusters | FileCheck %s --check-prefix=EARLY

// The last stage computes its gradients at once. What it gives back is the other
// one's backward. A gradient is summed up where its parameter is.
// STAGES: dist.stage "P0" 0 phase prologue on @d0
// STAGES: nn.accumulator
// STAGES: dist.stage "P1" 1 phase prologue on @d1
// STAGES: dist.stage "F0" 0 on @d0
// STAGES: nn.tanh
// STAGES: dist.stage "F1" 1 on @d1
// STAGES-SAME: dist.sums = array<i64:
// STAGES: dist.transfer
// STAGES: dist.stage "B0" 0 phase backward on @d0
// STAGES-SAME: dist.sums = array<i64:
// STAGES: dist.stage "U1" 1 phase update on @d1
// STAGES: nn.parameter state @w1
// STAGES: dist.stage "U0" 0 phase update on @d0
// STAGES: nn.parameter state @w0

// Each device computes its prologue first and its update last.
// PLAN: plan.stage "P0"
// PLAN: plan.stage "F0"
// PLAN: plan.stage "B0"
// PLAN: plan.stage "U0"
// PLAN: plan.program @program0
// PLAN-DAG: plan.slot state @w0
// PLAN-DAG: plan.slot arena span sum
// PLAN: plan.run @P0 micro_batch 0
// PLAN: plan.run @F0 micro_batch 0
// PLAN: plan.run @F0 micro_batch 1
// PLAN: plan.run @B0 micro_batch 0
// PLAN: plan.run @F0 micro_batch 2
// PLAN: plan.run @B0 micro_batch 1
// PLAN: plan.run @B0 micro_batch 2
// PLAN: plan.run @U0 micro_batch 2
// PLAN: plan.program @program1
// PLAN: plan.run @P1 micro_batch 0
// PLAN: plan.run @F1 micro_batch 0
// PLAN: plan.run @F1 micro_batch 2
// PLAN: plan.run @U1 micro_batch 2
// PLAN: plan.store_output 0 micro_batch 2

// Split, a backward first computes what the other stage waits for. Nobody waits
// for the first stage: all of its backward are gradients of weights.
// SPLIT: dist.stage "F1" 1 on @d1
// SPLIT: dist.stage "I1" 1 phase input_gradients on @d1
// SPLIT-NOT: dist.sums
// SPLIT: nn.dot
// SPLIT-NOT: dist.stage "I0"
// SPLIT: dist.stage "W1" 1 phase weight_gradients on @d1
// SPLIT-SAME: dist.sums = array<i64:
// SPLIT: nn.dot
// SPLIT: dist.transfer {{.*}} "I1 on d1 makes it, W0 on d0 reads it"
// SPLIT: dist.stage "W0" 0 phase weight_gradients on @d0
// SPLIT-SAME: dist.sums = array<i64:
// SPLIT: nn.dot
// SPLIT: dist.stage "U1" 1 phase update on @d1

// ORDER: plan.program @program0
// ORDER: plan.run @F0 micro_batch 0
// ORDER: plan.run @F0 micro_batch 1
// ORDER: plan.run @W0 micro_batch 0
// ORDER: plan.run @F0 micro_batch 2
// ORDER: plan.run @W0 micro_batch 1
// ORDER: plan.program @program1
// ORDER: plan.run @F1 micro_batch 0
// ORDER: plan.run @I1 micro_batch 0
// ORDER: plan.run @F1 micro_batch 1
// ORDER: plan.run @I1 micro_batch 1
// ORDER: plan.run @W1 micro_batch 0
// ORDER: plan.run @F1 micro_batch 2
// ORDER: plan.run @I1 micro_batch 2
// ORDER: plan.run @W1 micro_batch 1
// ORDER: plan.run @W1 micro_batch 2

// The gradient of a weight is added up before gradients go further back, so that
// what it reads is kept no longer.
// EARLY: dist.stage "F0"
// EARLY: nn.dot {{.*}} contract [0] x [0]
// EARLY: nn.dot {{.*}} contract [1] x [1]
// EARLY: nn.dot {{.*}} contract [0] x [0]
// EARLY: dist.stage "U0"

// One device has both ends of a V.
// FOLDED: dist.devices = array<i64: 0, 0>
nn.weight @w0 "w0" : tensor<16x16xf32> = dense<0.5> : tensor<16x16xf32> {nn.trained}
nn.weight @w1 "w1" : tensor<16x16xf32> = dense<0.5> : tensor<16x16xf32> {nn.trained}
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", nn.port = 0 : i64}) -> (tensor<8x16xf32> {nn.name = "y", nn.port = 0 : i64}) {
  %w0 = nn.parameter @w0 : tensor<16x16xf32>
  %w1 = nn.parameter @w1 : tensor<16x16xf32>
  %0 = nn.dot %x, %w0 batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32> loc("first")
  %1 = nn.tanh %0 : tensor<8x16xf32> loc("first")
  %2 = nn.dot %1, %w1 batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32> loc("second")
  return %2 : tensor<8x16xf32>
}

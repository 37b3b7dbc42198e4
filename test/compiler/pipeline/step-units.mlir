// RUN: partita-opt %s --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd clip-norm=1 micro-batches=3" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=devices=2 --dist-assign-stages --dist-form-stages -o %t
// RUN: FileCheck %s --check-prefix=STAGES < %t
// RUN: partita-opt %t --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=PLAN

// Both stages read a trained weight. It lies on the first one's device, which
// hands it on once a step. The other one sums its part of the gradient, and
// sends the sum. All of a step's gradients are needed for their norm, and the
// norm for each update: so the other stage has two updates.
// STAGES: %[[P0:.*]]:{{.*}} = dist.stage "P0" 0 phase prologue on @d0
// STAGES: nn.parameter state @tied
// STAGES: nn.accumulator
// STAGES: dist.stage "P1" 1 phase prologue on @d1
// STAGES-NOT: nn.parameter
// STAGES: nn.accumulator
// STAGES: dist.stage "F0" 0 on @d0
// STAGES: nn.parameter state @tied
// STAGES: dist.transfer %[[P0]]{{.*}} reason "P0 on d0 makes it, F1 on d1 reads it"
// STAGES: dist.stage "F1" 1 on @d1
// STAGES-NOT: nn.parameter state @tied
// STAGES: dist.stage "B0" 0 phase backward on @d0
// STAGES: dist.stage "U1" 1 phase update on @d1
// STAGES-NOT: nn.parameter
// STAGES: dist.stage "U0" 0 phase update on @d0
// STAGES-DAG: nn.sqrt
// STAGES-DAG: nn.parameter state @tied
// STAGES: dist.stage "U1_2" 1 phase update on @d1
// STAGES: nn.parameter state @own

// PLAN: plan.stage "U1"
// PLAN: plan.stage "U1_2"
// PLAN: plan.program @program0
// PLAN: plan.copy
// PLAN: plan.run @P0 micro_batch 0
// PLAN-NEXT: plan.send
// PLAN: plan.run @U0 micro_batch 2
// PLAN: plan.program @program1
// PLAN: plan.slot arena span step {{.*}}tensor<16x16xf32>
// PLAN: plan.run @P1 micro_batch 0
// PLAN: plan.run @F1 micro_batch 0
// PLAN: plan.run @F1 micro_batch 2
// PLAN: plan.run @U1 micro_batch 2
// PLAN: plan.send
// PLAN: plan.recv
// PLAN: plan.run @U1_2 micro_batch 2
nn.weight @tied "tied" : tensor<16x16xf32> = dense<0.5> : tensor<16x16xf32> {nn.trained}
nn.weight @own "own" : tensor<16x16xf32> = dense<0.5> : tensor<16x16xf32> {nn.trained}
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", nn.port = 0 : i64}) -> (tensor<8x16xf32> {nn.name = "y", nn.port = 0 : i64}) {
  %tied = nn.parameter @tied : tensor<16x16xf32>
  %own = nn.parameter @own : tensor<16x16xf32>
  %0 = nn.dot %x, %tied batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32> loc("first")
  %1 = nn.tanh %0 : tensor<8x16xf32> loc("first")
  %2 = nn.dot %1, %own batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32> loc("second")
  %3 = nn.tanh %2 : tensor<8x16xf32> loc("second")
  %4 = nn.dot %3, %tied batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32> loc("second")
  return %4 : tensor<8x16xf32>
}

// RUN: split-file %s %t
// RUN: partita-opt %t/model.mlir --dist-assign-blocks=schedule=%t/orders.csv --dist-assign-stages --dist-choose-schedule --dist-form-stages --fuse-clusters --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule -o %t/plan.mlir 2>%t/remarks
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.mlir
// RUN: FileCheck %s --check-prefix=REMARK < %t/remarks
// RUN: partita-opt %t/model.mlir --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=2" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=schedule=%t/split.csv --dist-assign-stages --dist-form-stages --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=SPLIT
// RUN: partita-opt %t/model.mlir --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=2" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=schedule=%t/whole.csv --dist-assign-stages --dist-form-stages --form-clusters --lower-clusters --plan-build --plan-place --plan-reserve-memory --plan-verify-schedule | FileCheck %s --check-prefix=WHOLE
// RUN: not partita-opt %t/model.mlir --dist-assign-blocks=schedule=%t/cell.csv 2>&1 | FileCheck %s --check-prefix=CELL
// RUN: not partita-opt %t/model.mlir --dist-assign-blocks="schedule=%t/orders.csv devices=1" 2>&1 | FileCheck %s --check-prefix=DEVICES
// RUN: not partita-opt %t/model.mlir --dist-assign-blocks="schedule=%t/orders.csv stages=3" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not partita-opt %t/model.mlir --dist-assign-blocks="schedule=%t/orders.csv micro-batches=3" --dist-assign-stages --dist-choose-schedule --dist-form-stages --fuse-clusters --form-clusters --lower-clusters --plan-build 2>&1 | FileCheck %s --check-prefix=BATCHES
// RUN: not partita-opt %t/model.mlir --dist-assign-blocks=schedule=%t/whole.csv --dist-assign-stages --dist-choose-schedule --dist-form-stages --fuse-clusters --form-clusters --lower-clusters --plan-build 2>&1 | FileCheck %s --check-prefix=GRADIENTS
// RUN: not partita-opt %t/model.mlir --nn-add-loss="loss=mse:y parts" --nn-differentiate --nn-add-optimizer="optimizer=sgd micro-batches=2" --nn-form-accumulators --fuse-clusters --dist-assign-blocks=schedule=%t/deadlock.csv --dist-assign-stages --dist-form-stages --form-clusters --lower-clusters --plan-build 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// RUN: partita-opt %t/model.mlir --dist-assign-blocks=schedule=%t/orders.csv --dist-assign-stages --dist-choose-schedule --dist-write-partition=file=%t/written.yaml 2>/dev/null
// RUN: FileCheck %s --check-prefix=WRITTEN < %t/written.yaml

// The file says devices, stages, their places, and micro-batches. Its second
// rank comes first in the model.
// PLAN: plan.model
// PLAN-SAME: schedule "orders.csv"
// PLAN-SAME: micro_batches 2
// PLAN: plan.program @program0
// PLAN: plan.run @F1 micro_batch 0
// PLAN: plan.run @F1 micro_batch 1
// PLAN: plan.program @program1
// PLAN: plan.run @F0 micro_batch 0
// PLAN: plan.run @F0 micro_batch 1
// REMARK: orders.csv:1:1: remark: REDUCE_GRAD: left out

// The first stage gives no gradients on, and has no I.
// SPLIT: plan.program @program0
// SPLIT: plan.run @F0 micro_batch 0
// SPLIT: plan.run @F0 micro_batch 1
// SPLIT: plan.run @W0 micro_batch 0
// SPLIT: plan.run @W0 micro_batch 1
// SPLIT: plan.run @U0
// SPLIT: plan.program @program1
// SPLIT: plan.run @F1 micro_batch 0
// SPLIT: plan.run @I1 micro_batch 0
// SPLIT: plan.run @F1 micro_batch 1
// SPLIT: plan.run @I1 micro_batch 1
// SPLIT: plan.run @W1 micro_batch 0
// SPLIT: plan.run @W1 micro_batch 1
// SPLIT: plan.run @U1

// The last stage has a backward of its own, since the file says when.
// WHOLE: plan.program @program0
// WHOLE: plan.run @B0 micro_batch 0
// WHOLE: plan.program @program1
// WHOLE: plan.run @F1 micro_batch 0
// WHOLE: plan.run @F1 micro_batch 1
// WHOLE: plan.run @B1 micro_batch 0
// WHOLE: plan.run @B1 micro_batch 1

// CELL: cell.csv:2:5: error: '1G1' is no action: write a stage, F, B, I or W, and a micro-batch, as in 2F0
// DEVICES: orders.csv:1:1: error: orders 2 devices, and there is 1: say --devices 2
// COUNT: orders.csv:1:1: error: orders 2 stages, and 3 are asked for: leave out --stages
// BATCHES: orders.csv:1:1: error: orders 2 micro-batches, and a step has 3 (--micro-batches)
// GRADIENTS: whole.csv:1:1: error: orders gradients, and the model is not trained: leave out what is not F
// DEADLOCK: deadlock.csv:1:1: error: deadlocks: these actions wait for one another: 0B0 (rank 0, cell 2) waits for 1B0 (rank 1, cell 3), which comes after 1F1 (rank 1, cell 2); 1F1 (rank 1, cell 2) waits for 0F1 (rank 0, cell 3), which comes after 0B0 (rank 0, cell 2)
// WRITTEN: devices: [1, 0]
// WRITTEN-NEXT: # --schedule {{.*}}orders.csv
// WRITTEN-NEXT: micro_batches: 2

//--- orders.csv
1F0,,1F1
0F0,0F1,0REDUCE_GRAD
//--- split.csv
0F0,0F1,,0I0,0W0,0I1,0W1
1F0,1I0,1F1,1I1,1W0,1W1
//--- whole.csv
0F0,0F1,,,0B0,0B1
,1F0,1F1,1B0,1B1
//--- deadlock.csv
0F0,0B0,0F1,0B1
1F0,1F1,1B0,1B1
//--- cell.csv
0F0,0F1
1F0,1G1
//--- model.mlir
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

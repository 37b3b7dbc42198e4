// RUN: partita-opt %s -split-input-file --dist-assign-stages -verify-diagnostics | FileCheck %s

// By the cost model: the two heavy ops part, clusters stay whole.
// CHECK-LABEL: @balance
// CHECK-SAME: dist.device_count = 2
// CHECK-SAME: dist.devices = array<i64: 0, 1>
func.func @balance(%x: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {dist.device_count = 2 : i64} {
  // CHECK: nn.exp {{.*}} {dist.block = "B0", dist.price = array<f64: [[NS:[0-9.e+]+]], [[NS]]>, dist.stage = 0 : i64, nn.cluster = #nn.cluster<0, kernel>}
  %0 = nn.exp %x {nn.cluster = #nn.cluster<0, kernel>} : tensor<64x64xf32>
  // CHECK: nn.tanh {{.*}}dist.stage = 0
  %1 = nn.tanh %0 {nn.cluster = #nn.cluster<0, kernel>} : tensor<64x64xf32>
  // CHECK: nn.reshape {{.*}} {dist.block = "B0", dist.stage = 0 : i64}
  %2 = nn.reshape %1 : tensor<64x64xf32> -> tensor<4096xf32>
  // CHECK: nn.exp {{.*}}dist.stage = 1
  %3 = nn.exp %2 {nn.cluster = #nn.cluster<1, kernel>} : tensor<4096xf32>
  // CHECK: nn.reshape {{.*}} {dist.block = "B1", dist.stage = 1 : i64}
  %4 = nn.reshape %3 : tensor<4096xf32> -> tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: @more_devices_than_work
// CHECK-SAME: dist.devices = array<i64: 0, 1, 2>
// CHECK-SAME: dist.stage_blocks = {{\[\[}}"B0"], [], []]
// expected-remark @+1 {{2 of 3 devices stay empty: the model has only 1 stage}}
func.func @more_devices_than_work(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.device_count = 3 : i64} {
  %0 = nn.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Two stages a device for a schedule that wants them: stage s on device s modulo 2.
// CHECK-LABEL: @looped
// CHECK-SAME: dist.devices = array<i64: 0, 1, 0, 1>
func.func @looped(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.device_count = 2 : i64, dist.schedule = "looped"} {
  // CHECK: nn.exp {{.*}}dist.stage = 0
  %0 = nn.exp %x : tensor<8xf32>
  %1 = nn.exp %0 : tensor<8xf32>
  %2 = nn.exp %1 : tensor<8xf32>
  // CHECK: nn.tanh {{.*}}dist.stage = 3
  %3 = nn.tanh %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// As many stages as a person asks for.
// CHECK-LABEL: @stage_count
// CHECK-SAME: dist.devices = array<i64: 0, 1, 0>
// CHECK-NOT: dist.stage_count
func.func @stage_count(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.device_count = 2 : i64, dist.stage_count = 3 : i64} {
  %0 = nn.exp %x : tensor<8xf32>
  %1 = nn.exp %0 : tensor<8xf32>
  %2 = nn.exp %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// expected-error @+1 {{unknown schedule 'no' (fill_drain, sequential, looped, gpipe, 1f1b, interleaved, zb_h1, zb_v)}}
func.func @schedule(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.schedule = "no"} {
  %0 = nn.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Annotations of the model; what has none joins what it reads.
// CHECK-LABEL: @annotated
func.func @annotated(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.annotated_stages = {a = 0 : i64, c = 1 : i64}} {
  // CHECK: nn.exp {{.*}}dist.stage = 0
  %0 = nn.exp %x : tensor<8xf32> loc("a")
  // CHECK: nn.tanh {{.*}}dist.stage = 0
  %1 = nn.tanh %0 : tensor<8xf32> loc("b")
  // CHECK: nn.abs {{.*}}dist.stage = 1
  %2 = nn.abs %1 : tensor<8xf32> loc("c")
  return %2 : tensor<8xf32>
}

// -----

// Where stages are named, a number of them says nothing.
// CHECK-LABEL: @named
// expected-remark @+1 {{the number of stages that was asked for is not taken}}
func.func @named(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.stage_blocks = [["A"]], dist.stage_count = 2 : i64} {
  // CHECK: nn.exp {{.*}}dist.stage = 0
  %0 = nn.exp %x {dist.block = "A"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A cluster that blocks cut stays with its heaviest op.
// CHECK-LABEL: @cut
func.func @cut(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32>
    attributes {dist.stage_blocks = [["B1"], ["B2"]], dist.devices = array<i64: 1, 0>} {
  // expected-remark @+2 {{blocks 'B2' and 'B1' cut operations that are computed together; 'nn.relu' goes with 'nn.dot' to stage 0}}
  // CHECK: nn.dot {{.*}}dist.stage = 0
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] {dist.block = "B1", nn.cluster = #nn.cluster<0, kernel>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: nn.relu {{.*}} {dist.block = "B1", dist.stage = 0
  %1 = nn.relu %0 {dist.block = "B2", nn.cluster = #nn.cluster<0, kernel>} : tensor<8x8xf32>
  // CHECK: nn.exp {{.*}}dist.stage = 1
  %2 = nn.exp %1 {dist.block = "B2", nn.cluster = #nn.cluster<1, kernel>} : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A stage all of whose operations a cluster takes away says where they went.
// CHECK-LABEL: @taken
// expected-remark @+1 {{stage 1 stays empty: its operations are computed together with those of other stages, 'nn.relu' in stage 0}}
func.func @taken(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32>
    attributes {dist.stage_blocks = [["B1"], ["B2"]], dist.devices = array<i64: 0, 1>} {
  // expected-remark @+1 {{blocks 'B2' and 'B1' cut operations that are computed together}}
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] {dist.block = "B1", nn.cluster = #nn.cluster<0, kernel>} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: nn.relu {{.*}} {dist.block = "B1", dist.stage = 0
  %1 = nn.relu %0 {dist.block = "B2", nn.cluster = #nn.cluster<0, kernel>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

func.func @cycle(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.stage_blocks = [["A"], ["B"]]} {
  %0 = nn.exp %x {dist.block = "A"} : tensor<8xf32> loc("one")
  %1 = nn.tanh %0 {dist.block = "B"} : tensor<8xf32> loc("two")
  // expected-error @unknown {{stages depend on each other in a cycle: 'two' of stage 1 reads 'one' of stage 0; 'three' of stage 0 reads 'two' of stage 1: put them into one stage, or split one into two}}
  %2 = nn.abs %1 {dist.block = "A"} : tensor<8xf32> loc("three")
  return %2 : tensor<8xf32>
}

// -----

// expected-error @+1 {{there is 1 device for 2 stages}}
func.func @devices(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.stage_blocks = [["A"], ["B"]], dist.devices = array<i64: 0>} {
  %0 = nn.exp %x {dist.block = "A"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

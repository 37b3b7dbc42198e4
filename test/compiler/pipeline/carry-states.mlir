// RUN: partita-opt --split-input-file --nn-carry-states="states=past*=present*" %s 2>/dev/null | FileCheck %s
// RUN: partita-opt --split-input-file --nn-carry-states="states=past*=present*" %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: partita-opt --split-input-file --nn-carry-states="states=past*=present* sequences=4" %s 2>/dev/null | FileCheck %s --check-prefix=SEQUENCES
// SEQUENCES: module attributes {dist.full_micro_batches, dist.full_steps, dist.sequences = 4 : i64}
// RUN: not partita-opt --split-input-file --nn-carry-states="states=old=present1" %s 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: --state old=present1: the model has no input 'old'; its inputs are 'x', 'past1', 'past2'

// Inputs become states with zeros; their new values come behind what is checked. Steps follow one another along dimension 0.
// CHECK-LABEL: module
// CHECK-SAME: dist.full_micro_batches, dist.full_steps
// CHECK: nn.weight state @past1 "past1" : tensor<2x8xf32> = dense<0.000000e+00> : tensor<2x8xf32> {nn.role = "carried"}
// CHECK-NEXT: nn.weight state @past2 "past2" : tensor<4xi64> = dense<0> : tensor<4xi64> {nn.role = "carried"}
// CHECK: func.func @main(%[[X:.*]]: tensor<2x8xf32> {nn.batch_axis = 0 : i64, nn.name = "x", nn.port = 0 : i64}) -> (tensor<2x8xf32> {nn.batch_axis = 0 : i64, nn.name = "y"}, tensor<1x2xi64> {nn.check = {{.*}}}, tensor<4xi64> {nn.state = @past2}, tensor<2x8xf32> {nn.state = @past1}) {
// CHECK-DAG: %[[A:.*]] = nn.parameter state @past1 {nn.carried} : tensor<2x8xf32>
// CHECK-DAG: %[[B:.*]] = nn.parameter state @past2 {nn.carried} : tensor<4xi64>
// CHECK: %[[S:.*]] = nn.add %[[X]], %[[A]]
// CHECK: return %[[S]], %{{.*}}, %[[B]], %[[S]]
module {
  func.func @main(%x: tensor<2x8xf32> {nn.name = "x", nn.port = 0 : i64}, %a: tensor<2x8xf32> {nn.name = "past1"}, %b: tensor<4xi64> {nn.name = "past2"})
      -> (tensor<4xi64> {nn.name = "present2"}, tensor<2x8xf32> {nn.name = "y"}, tensor<2x8xf32> {nn.name = "present1"}, tensor<1x2xi64> {nn.check = {op = "Gather", node = "g", operand = "indices", tensor = "i", shape = array<i64: 1>, low = array<i64: 0>, high = array<i64: 1>}}) {
    %0 = nn.add %x, %a : tensor<2x8xf32>
    %1 = nn.constant dense<0> : tensor<1x2xi64>
    return %b, %0, %0, %1 : tensor<4xi64>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<1x2xi64>
  }
}

// -----

// An output that does not have as many entries is of one step.
// REMARK: remark: a run computes one step: its states go from step to step, and dimension 0 of the output 'y' has another size than that of the inputs
// CHECK-LABEL: module
// CHECK-SAME: nn.mixes = "its states go from step to step, and dimension 0 of the output 'y' has another size than that of the inputs"
// CHECK: func.func @main(%{{.*}}: tensor<2x8xf32> {nn.name = "x"}) -> (tensor<f32> {nn.name = "y"}, tensor<2x8xf32> {nn.state = @past})
module {
  func.func @main(%x: tensor<2x8xf32> {nn.name = "x"}, %a: tensor<2x8xf32> {nn.name = "past"}) -> (tensor<f32> {nn.name = "y"}, tensor<2x8xf32> {nn.name = "present"}) {
    %0 = nn.add %x, %a : tensor<2x8xf32>
    %1 = nn.reduce sum %0 [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %1, %0 : tensor<f32>, tensor<2x8xf32>
  }
}

// -----

// New entries behind those of the state are written over the oldest ones of a ring.
// CHECK-LABEL: module
// CHECK: nn.weight state @"past/place" "past/place" : tensor<i64> = dense<0> : tensor<i64> {nn.role = "carried"}
// CHECK: nn.weight state @past "past" : tensor<2x7xf32> = dense<0.000000e+00> : tensor<2x7xf32> {nn.ring_dim = 1 : i64, nn.ring_place = @"past/place", nn.role = "carried"}
// CHECK: func.func @main(%[[X:.*]]: tensor<2x1xf32> {{.*}}) -> (tensor<2x1xf32> {{.*}}, tensor<2x7xf32> {nn.state = @past}, tensor<i64> {nn.state = @"past/place"}) {
// CHECK: %[[RING:.*]] = nn.parameter state @past {nn.carried}
// CHECK: %[[PLACE:.*]] = nn.parameter state @"past/place" {nn.carried}
// CHECK: %[[OLD:.*]] = nn.gather %[[RING]], %{{.*}} dim 1
// CHECK: %[[ALL:.*]] = nn.concat %[[OLD]], %[[X]] dim 1
// CHECK: %[[Y:.*]] = nn.reduce sum %[[ALL]]
// CHECK: %[[START:.*]] = nn.broadcast %[[PLACE]] [] : tensor<i64> -> tensor<2xi64>
// CHECK: %[[NEXT:.*]] = nn.update_slice %[[RING]], %{{.*}}, %[[START]] dim 1
// CHECK: %[[MOVED:.*]] = nn.rem
// CHECK: return %{{.*}}, %[[NEXT]], %[[MOVED]]
module {
  func.func @main(%x: tensor<2x1xf32> {nn.name = "x"}, %a: tensor<2x7xf32> {nn.name = "past"}) -> (tensor<2x1xf32> {nn.name = "y"}, tensor<2x8xf32> {nn.name = "present"}) {
    %0 = nn.concat %a, %x dim 1 : (tensor<2x7xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
    %1 = nn.reduce sum %0 [1] : tensor<2x8xf32> -> tensor<2xf32>
    %2 = nn.reshape %1 : tensor<2xf32> -> tensor<2x1xf32>
    return %2, %0 : tensor<2x1xf32>, tensor<2x8xf32>
  }
}

// -----

// Of another output that is longer, the state keeps the end.
// CHECK-LABEL: module
// CHECK: nn.weight state @past "past" : tensor<2x7xf32> = dense<0.000000e+00> : tensor<2x7xf32> {nn.role = "carried"}
// CHECK: %[[A:.*]] = nn.parameter state @past
// CHECK: %[[P:.*]] = nn.pad %[[A]]
// CHECK: %[[E:.*]] = nn.slice %[[P]] [0, 2] to [2, 9]
// CHECK: return %{{.*}}, %[[E]]
module {
  func.func @main(%x: tensor<2x1xf32> {nn.name = "x"}, %a: tensor<2x7xf32> {nn.name = "past"}) -> (tensor<2x1xf32> {nn.name = "y"}, tensor<2x9xf32> {nn.name = "present"}) {
    %0 = nn.constant dense<1.0> : tensor<f32>
    %1 = nn.pad %a, %0 low [0, 1] high [0, 1] : tensor<2x7xf32>, tensor<f32> -> tensor<2x9xf32>
    return %x, %1 : tensor<2x1xf32>, tensor<2x9xf32>
  }
}

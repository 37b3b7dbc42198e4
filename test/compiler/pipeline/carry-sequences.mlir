// RUN: partita-opt --split-input-file --nn-carry-states="states=past*=present* sequences=2 step-sequences=3" %s | FileCheck %s
// RUN: partita-opt --split-input-file --nn-carry-states="states=past*=present* sequences=6" %s | FileCheck %s --check-prefix=ONE
// RUN: not partita-opt --split-input-file --nn-carry-states="states=past*=present* step-sequences=4" %s 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: sed s/16xf32/8xf32/g %s | not partita-opt --split-input-file --nn-carry-states="states=past*=present* step-sequences=6" 2>&1 | FileCheck %s --check-prefix=BYTES

// PARTS: error: a step cannot be of 4 sequences: the state 'past' is 6x16xf32, which they cannot share along dimension 0
// BYTES: error: a step cannot be of 6 sequences: each has 32 bytes of the state 'past'; they must be a multiple of 64

// The last input says of which sequences a step is. The others keep their states. Each sequence has two samples.
// CHECK-LABEL: module
// CHECK-SAME: dist.sequences = 2 : i64, dist.step_sequences = 3 : i64
// CHECK: func.func @main(%[[X:.*]]: tensor<6x16xf32> {nn.batch_axis = 0 : i64, nn.name = "x"}, %[[LIVE:.*]]: tensor<3xi1> {nn.name = "/live"}) -> (tensor<6x16xf32> {nn.batch_axis = 0 : i64, nn.name = "y"}, tensor<6x16xf32> {nn.state = @past})
// CHECK: %[[EACH:.*]] = nn.broadcast %[[LIVE]] [0] : tensor<3xi1> -> tensor<3x2xi1>
// CHECK: %[[ROWS:.*]] = nn.reshape %[[EACH]] : tensor<3x2xi1> -> tensor<6xi1>
// CHECK: %[[ALL:.*]] = nn.broadcast %[[ROWS]] [0] : tensor<6xi1> -> tensor<6x16xi1>
// CHECK: %[[OLD:.*]] = nn.parameter state @past
// CHECK: %[[NEW:.*]] = nn.add %[[X]], %[[OLD]]
// CHECK: %[[NEXT:.*]] = nn.select %[[ALL]], %[[NEW]], %[[OLD]]
// CHECK: return %[[NEW]], %[[NEXT]]
// ONE-LABEL: module
// ONE-SAME: dist.sequences = 6 : i64
// ONE-NOT: select
module {
  func.func @main(%x: tensor<6x16xf32> {nn.name = "x"}, %a: tensor<6x16xf32> {nn.name = "past"}) -> (tensor<6x16xf32> {nn.name = "y"}, tensor<6x16xf32> {nn.name = "present"}) {
    %0 = nn.add %x, %a : tensor<6x16xf32>
    return %0, %0 : tensor<6x16xf32>, tensor<6x16xf32>
  }
}

// -----

// Nothing is written to the cache of a sequence that is not there.
// CHECK-LABEL: module
// CHECK: %[[OLD:.*]] = nn.parameter state @past
// CHECK: %[[NONE:.*]] = nn.constant dense<-1> : tensor<6xi64>
// CHECK: %[[PLACES:.*]] = nn.select %{{.*}}, %arg1, %[[NONE]]
// CHECK: %[[NEXT:.*]] = nn.update_slice %[[OLD]], %arg0, %[[PLACES]] dim 1
// CHECK: return %[[NEXT]], %[[NEXT]]
module {
  func.func @main(%x: tensor<6x1x16xf32> {nn.name = "x"}, %n: tensor<6xi64> {nn.name = "n"}, %a: tensor<6x5x16xf32> {nn.name = "past"}) -> (tensor<6x5x16xf32> {nn.name = "y"}, tensor<6x5x16xf32> {nn.name = "present"}) {
    %0 = nn.update_slice %a, %x, %n dim 1 : tensor<6x5x16xf32>, tensor<6x1x16xf32>, tensor<6xi64>
    return %0, %0 : tensor<6x5x16xf32>, tensor<6x5x16xf32>
  }
}

// -----

// The ring of each begins at a place of its own.
// CHECK-LABEL: module
// CHECK: nn.weight state @"past/place" "past/place" : tensor<3x8xi64>
// CHECK: %[[RING:.*]] = nn.parameter state @past {nn.carried}
// CHECK: %[[PLACES:.*]] = nn.parameter state @"past/place" {nn.carried} : tensor<3x8xi64>
// CHECK: %[[FIRST:.*]] = nn.slice %[[PLACES]] [0, 0] to [3, 1]
// CHECK: nn.gather_elements %[[RING]], %{{.*}} dim 1
// CHECK: nn.update_slice %[[RING]], %arg0, %{{.*}} dim 1
// CHECK: %[[MOVED:.*]] = nn.rem
// CHECK: %[[KEPT:.*]] = nn.select %{{.*}}, %[[MOVED]], %[[PLACES]] : tensor<3x8xi1>
// CHECK: return %{{.*}}, %{{.*}}, %[[KEPT]]
// ONE: nn.weight state @"past/place" "past/place" : tensor<1x8xi64>
// ONE: %[[PLACES:.*]] = nn.parameter state @"past/place" {nn.carried} : tensor<1x8xi64>
// ONE: %[[FIRST:.*]] = nn.slice %[[PLACES]] [0, 0] to [1, 1]
// ONE: %[[PLACE:.*]] = nn.reshape %[[FIRST]] : tensor<1x1xi64> -> tensor<i64>
// ONE: nn.gather %{{.*}}, %{{.*}} dim 1
module {
  func.func @main(%x: tensor<6x1x16xf32> {nn.name = "x"}, %a: tensor<6x7x16xf32> {nn.name = "past"}) -> (tensor<6x16xf32> {nn.name = "y"}, tensor<6x8x16xf32> {nn.name = "present"}) {
    %0 = nn.concat %a, %x dim 1 : (tensor<6x7x16xf32>, tensor<6x1x16xf32>) -> tensor<6x8x16xf32>
    %1 = nn.reduce sum %0 [1] : tensor<6x8x16xf32> -> tensor<6x16xf32>
    return %1, %0 : tensor<6x16xf32>, tensor<6x8x16xf32>
  }
}

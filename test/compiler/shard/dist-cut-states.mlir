// RUN: partita-opt --dist-cut-states --split-input-file %s | FileCheck %s
// RUN: partita-opt --dist-cut-states --dist-propagate --dist-reshard --dist-localize --split-input-file %s | FileCheck %s --check-prefix=LOCAL

// Momentum is cut over the replicas; the parameter is not. Each replica sums its part of the gradient, and all gather the new parameter.
// CHECK-LABEL: func.func @main
// CHECK-DAG: nn.parameter state @w {dist.sharding = #dist.sharding<[{}, {}]>}
// CHECK-DAG: nn.parameter state @w.momentum {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// LOCAL: nn.weight state @w.momentum "w/momentum" : tensor<8x4xf32> part tensor<4x4xf32> = {{.*}}dist.sharding = #dist.sharding<[{"data"}, {}]>
// LOCAL-LABEL: func.func @main
// LOCAL: %[[S:.*]] = nn.sum_micro_batches
// LOCAL: %[[G:.*]] = dist.reduce_scatter sum %[[S]] dim 0 blocks 1 axes ["data"] reason "each replica sums {{.*}} over micro-batches of its own" : tensor<8x4xf32> -> tensor<4x4xf32>
// LOCAL: %[[M:.*]] = nn.add %{{.*}}, %[[G]] : tensor<4x4xf32>
// LOCAL: dist.all_gather %{{.*}} dim 0 blocks 1 axes ["data"] {{.*}} : tensor<4x4xf32> -> tensor<8x4xf32>
module attributes {dist.full_steps} {
  nn.weight state @w "w" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  nn.weight state @w.momentum "w/momentum" : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32> {nn.role = "optimizer"}
  func.func @main(%g: tensor<8x4xf32> {nn.name = "g"}) -> (tensor<8x4xf32> {nn.state = @w}, tensor<8x4xf32> {nn.state = @w.momentum})
      attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.zero = 1 : i64} {
    %w = nn.parameter state @w : tensor<8x4xf32>
    %m = nn.parameter state @w.momentum : tensor<8x4xf32>
    %s = nn.sum_micro_batches %g : tensor<8x4xf32>
    %n = nn.add %m, %s : tensor<8x4xf32>
    %v = nn.sub %w, %n : tensor<8x4xf32>
    return %v, %n : tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// Without `dist.zero` nothing is cut, and the whole gradient is summed. What no dimension is long enough for stays whole anyway.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: {"data"}
// LOCAL-LABEL: func.func @whole
// LOCAL: %[[S:.*]] = nn.sum_micro_batches
// LOCAL: dist.all_reduce sum %[[S]] axes ["data"] {{.*}} : tensor<3xf32>
module attributes {dist.full_steps} {
  nn.weight state @b "b" : tensor<3xf32> = dense<1.0> : tensor<3xf32>
  func.func @whole(%g: tensor<3xf32> {nn.name = "g"}) -> (tensor<3xf32> {nn.state = @b}) attributes {dist.axes = [#dist.axis<"data" = 4>, #dist.axis<"stage" = 0>]} {
    %b = nn.parameter state @b : tensor<3xf32>
    %s = nn.sum_micro_batches %g : tensor<3xf32>
    %v = nn.sub %b, %s : tensor<3xf32>
    return %v : tensor<3xf32>
  }
}

// -----

// The first dimension that divides is cut, or else the longest, into parts that are rounded up.
// CHECK-LABEL: func.func @dims
// CHECK-DAG: @a.m {dist.sharding = #dist.sharding<[{}, {"data"}]>}
// CHECK-DAG: @b.m {dist.sharding = #dist.sharding<[{}, {"data"}]>}
// CHECK-DAG: @c.m {dist.sharding = #dist.sharding<[{}]>}
module attributes {dist.full_steps} {
  nn.weight state @a.m "a/m" : tensor<3x8xf32> = dense<0.0> : tensor<3x8xf32> {nn.role = "optimizer"}
  nn.weight state @b.m "b/m" : tensor<5x7xf32> = dense<0.0> : tensor<5x7xf32> {nn.role = "optimizer"}
  nn.weight state @c.m "c/m" : tensor<3xf32> = dense<0.0> : tensor<3xf32> {nn.role = "optimizer"}
  func.func @dims() -> (tensor<3x8xf32>, tensor<5x7xf32>, tensor<3xf32>) attributes {dist.axes = [#dist.axis<"data" = 4>, #dist.axis<"stage" = 0>], dist.zero = 1 : i64} {
    %a = nn.parameter state @a.m : tensor<3x8xf32>
    %b = nn.parameter state @b.m : tensor<5x7xf32>
    %c = nn.parameter state @c.m : tensor<3xf32>
    return %a, %b, %c : tensor<3x8xf32>, tensor<5x7xf32>, tensor<3xf32>
  }
}

// -----

// With `dist.zero = 2` each replica adds up its part of a gradient, which is joined in each micro-batch. What is too small to be cut is joined once a step.
// LOCAL-LABEL: func.func @gradients
// LOCAL: %[[G:.*]] = dist.reduce_scatter sum %{{.*}} dim 0 blocks 1 axes ["data"] reason "each replica adds its part of {{.*}} up" : tensor<8x4xf32> -> tensor<4x4xf32>
// LOCAL: %[[A:.*]] = nn.accumulator 0 : tensor<4x4xf32>
// LOCAL: %[[N:.*]] = nn.add %[[A]], %[[G]] : tensor<4x4xf32>
// LOCAL: nn.sum_micro_batches %[[N]] in %[[A]] : tensor<4x4xf32> {nn.gradient_of = @w} : tensor<4x4xf32>
// LOCAL: dist.all_reduce sum %{{.*}} axes ["data"] reason "each replica sums {{.*}} over micro-batches of its own" : tensor<1xf32>
// LOCAL: dist.all_gather %{{.*}} dim 0 blocks 1 axes ["data"] {{.*}} : tensor<4x4xf32> -> tensor<8x4xf32>
module attributes {dist.full_steps} {
  nn.weight state @w "w" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  nn.weight state @b "b" : tensor<1xf32> = dense<1.0> : tensor<1xf32>
  func.func @gradients(%g: tensor<8x4xf32> {nn.name = "g"}, %h: tensor<1xf32> {nn.name = "h"}) -> (tensor<8x4xf32> {nn.state = @w}, tensor<1xf32> {nn.state = @b})
      attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.zero = 2 : i64} {
    %w = nn.parameter state @w : tensor<8x4xf32>
    %b = nn.parameter state @b : tensor<1xf32>
    %a = nn.accumulator 0 : tensor<8x4xf32>
    %0 = nn.add %a, %g : tensor<8x4xf32>
    %s = nn.sum_micro_batches %0 in %a : tensor<8x4xf32> {nn.gradient_of = @w} : tensor<8x4xf32>
    %c = nn.accumulator 1 : tensor<1xf32>
    %1 = nn.add %c, %h : tensor<1xf32>
    %t = nn.sum_micro_batches %1 in %c : tensor<1xf32> {nn.gradient_of = @b} : tensor<1xf32>
    %v = nn.sub %w, %s : tensor<8x4xf32>
    %u = nn.sub %b, %t : tensor<1xf32>
    return %v, %u : tensor<8x4xf32>, tensor<1xf32>
  }
}

// -----

// With `dist.zero = 3` parameters are cut, too. Each node gathers what it reads, and nobody gathers what the update writes. A weight that is not trained stays whole.
// CHECK-LABEL: func.func @parameters
// CHECK-DAG: nn.parameter state @w {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-DAG: nn.parameter state @w.momentum {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-DAG: nn.parameter state @mean {dist.sharding = #dist.sharding<[{}, {}]>}
// LOCAL: nn.weight state @w "w" : tensor<8x4xf32> part tensor<4x4xf32> = {{.*}}dist.sharding = #dist.sharding<[{"data"}, {}]>
// LOCAL-LABEL: func.func @parameters
// LOCAL: %[[W:.*]] = nn.parameter state @w : tensor<4x4xf32>
// LOCAL: %[[G:.*]] = dist.all_gather %[[W]] dim 0 blocks 1 axes ["data"] reason "'fc1' reads it whole" : tensor<4x4xf32> -> tensor<8x4xf32>
// LOCAL: nn.mul %{{.*}}, %[[G]]
// LOCAL: %[[G:.*]] = dist.all_gather %[[W]] dim 0 blocks 1 axes ["data"] reason "'fc2' reads it whole"
// LOCAL: nn.mul %{{.*}}, %[[G]]
// LOCAL: dist.reduce_scatter sum
// LOCAL-NOT: dist.all_gather
// LOCAL: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>
module attributes {dist.full_steps} {
  nn.weight state @w "w" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32> {nn.trained}
  nn.weight state @w.momentum "w/momentum" : tensor<8x4xf32> = dense<0.0> : tensor<8x4xf32> {nn.role = "optimizer"}
  nn.weight state @mean "mean" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  func.func @parameters(%x: tensor<8x4xf32> {nn.name = "x"}) -> (tensor<8x4xf32> {nn.state = @w}, tensor<8x4xf32> {nn.state = @w.momentum}, tensor<8x4xf32> {nn.state = @mean})
      attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.zero = 3 : i64} {
    %w = nn.parameter state @w : tensor<8x4xf32>
    %m = nn.parameter state @w.momentum : tensor<8x4xf32>
    %mean = nn.parameter state @mean : tensor<8x4xf32>
    %0 = nn.mul %x, %w : tensor<8x4xf32> loc("fc1")
    %1 = nn.mul %0, %w : tensor<8x4xf32> loc("fc2")
    %s = nn.sum_micro_batches %1 : tensor<8x4xf32>
    %n = nn.add %m, %s : tensor<8x4xf32>
    %v = nn.sub %w, %n : tensor<8x4xf32>
    %u = nn.add %mean, %mean : tensor<8x4xf32>
    return %v, %n, %u : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// Of parameters that are trained, the smallest stay whole, as long as they have a hundredth of all elements together.
// CHECK-LABEL: func.func @small
// CHECK-DAG: nn.parameter state @w {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-DAG: nn.parameter state @b {dist.sharding = #dist.sharding<[{}]>}
// CHECK-DAG: nn.parameter state @c {dist.sharding = #dist.sharding<[{"data"}]>}
// CHECK-DAG: nn.parameter state @b.momentum {dist.sharding = #dist.sharding<[{}]>}
module attributes {dist.full_steps} {
  nn.weight state @w "w" : tensor<100x8xf32> = dense<1.0> : tensor<100x8xf32> {nn.trained}
  nn.weight state @b "b" : tensor<8xf32> = dense<1.0> : tensor<8xf32> {nn.trained}
  nn.weight state @c "c" : tensor<8xf32> = dense<1.0> : tensor<8xf32> {nn.trained}
  nn.weight state @b.momentum "b/momentum" : tensor<8xf32> = dense<0.0> : tensor<8xf32> {nn.role = "optimizer"}
  func.func @small(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<100x8xf32> {nn.state = @w}, tensor<8xf32> {nn.state = @b}, tensor<8xf32> {nn.state = @c}, tensor<8xf32> {nn.state = @b.momentum})
      attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.zero = 3 : i64} {
    %w = nn.parameter state @w : tensor<100x8xf32>
    %b = nn.parameter state @b : tensor<8xf32>
    %c = nn.parameter state @c : tensor<8xf32>
    %m = nn.parameter state @b.momentum : tensor<8xf32>
    return %w, %b, %c, %m : tensor<100x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// The plan that evaluates has the same parts. Its replicas gather them in each of their micro-batches, so a step has all of these.
// LOCAL: module attributes {dist.full_steps}
// LOCAL: func.func @evaluates
// LOCAL: dist.all_gather %{{.*}} dim 0 blocks 1 axes ["data"] {{.*}} : tensor<4x4xf32> -> tensor<8x4xf32>
module {
  nn.weight state @w "w" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32> {nn.trained}
  func.func @evaluates(%x: tensor<8x4xf32> {nn.name = "x"}) -> tensor<8x4xf32> attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.zero = 3 : i64} {
    %w = nn.parameter state @w : tensor<8x4xf32>
    %0 = nn.mul %x, %w : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// A gradient comes cut in another dimension than its state. It is added up so, and brought into the cut of the state once a step.
// LOCAL-LABEL: func.func @another_cut
// LOCAL: %[[A:.*]] = nn.accumulator 0 : tensor<8x2xf32>
// LOCAL: %[[ADD:.*]] = nn.add %[[A]], %{{.*}} : tensor<8x2xf32>
// LOCAL-NOT: dist.all_to_all
// LOCAL: %[[S:.*]] = nn.sum_micro_batches %[[ADD]] in %[[A]] : tensor<8x2xf32> : tensor<8x2xf32>
// LOCAL: dist.all_to_all %[[S]]
// LOCAL: nn.sub %{{.*}} : tensor<4x4xf32>
module attributes {dist.full_steps} {
  nn.weight state @w "w" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32>
  func.func @another_cut(%g: tensor<8x4xf32> {nn.name = "g", dist.sharding = #dist.sharding<[{}, {"tensor"}]>}) -> (tensor<8x4xf32> {nn.state = @w})
      attributes {dist.axes = [#dist.axis<"tensor" = 2>, #dist.axis<"stage" = 0>], dist.micro_batches = 4 : i64} {
    %w = nn.parameter state @w {dist.sharding = #dist.sharding<[{"tensor"}, {}]>} : tensor<8x4xf32>
    %x = nn.exp %g : tensor<8x4xf32>
    %a = nn.accumulator 0 : tensor<8x4xf32>
    %n = nn.add %a, %x : tensor<8x4xf32>
    %s = nn.sum_micro_batches %n in %a : tensor<8x4xf32> : tensor<8x4xf32>
    %v = nn.sub %w, %s : tensor<8x4xf32>
    return %v : tensor<8x4xf32>
  }
}

// -----

// Each replica rounds its part of a parameter, once a step. Halves are gathered, for each node that reads them.
// LOCAL-LABEL: func.func @rounded
// LOCAL: %[[P:.*]] = nn.parameter state @w : tensor<4x4xf32>
// LOCAL: %[[H:.*]] = nn.cast %[[P]] : tensor<4x4xf32> -> tensor<4x4xbf16>
// LOCAL: dist.all_gather %[[H]] {{.*}} "'fc1' reads it whole" : tensor<4x4xbf16> -> tensor<8x4xbf16>
// LOCAL: dist.all_gather %[[H]] {{.*}} "'fc2' reads it whole" : tensor<4x4xbf16> -> tensor<8x4xbf16>
// LOCAL-NOT: dist.all_gather
module attributes {dist.full_steps} {
  nn.weight state @w "w" : tensor<8x4xf32> = dense<1.0> : tensor<8x4xf32> {nn.trained}
  func.func @rounded(%x: tensor<8x4xbf16> {nn.name = "x"}) -> (tensor<8x4xf32> {nn.state = @w})
      attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 0>], dist.zero = 3 : i64} {
    %w = nn.parameter state @w : tensor<8x4xf32>
    %h = nn.cast %w : tensor<8x4xf32> -> tensor<8x4xbf16>
    %0 = nn.mul %x, %h : tensor<8x4xbf16> loc("fc1")
    %1 = nn.mul %0, %h : tensor<8x4xbf16> loc("fc2")
    %g = nn.cast %1 : tensor<8x4xbf16> -> tensor<8x4xf32>
    %s = nn.sum_micro_batches %g : tensor<8x4xf32>
    %v = nn.sub %w, %s : tensor<8x4xf32>
    return %v : tensor<8x4xf32>
  }
}

// RUN: partita-opt --lower-clusters %s | FileCheck %s

// What a kernel's schedule decides: the tiles of its parallel loop, and how many
// of them a thread takes at a time (at least 32768 elements' work, of which a
// function counts 9).

// One loop through memory, whatever the shape.
// CHECK: #plan.kernel<"k0_relu", extent = 489, grain = 16
func.func @long(%x0: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
    %s = nn.relu %a0 : tensor<1000x1000xf32>
    nn.yield %s : tensor<1000x1000xf32>
  }
  return %0 : tensor<1000x1000xf32>
}

// Functions are more work than other ops.
// CHECK: #plan.kernel<"k1_exp", extent = 489, grain = 1
func.func @functions(%x0: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
    %s = nn.exp %a0 : tensor<1000x1000xf32>
    nn.yield %s : tensor<1000x1000xf32>
  }
  return %0 : tensor<1000x1000xf32>
}

// Less than two tiles are one.
// CHECK: #plan.kernel<"k2_relu", extent = 1, grain = 1
func.func @short(%x0: tensor<4000xf32>) -> tensor<4000xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<4000xf32>) -> tensor<4000xf32> {
    %s = nn.relu %a0 : tensor<4000xf32>
    nn.yield %s : tensor<4000xf32>
  }
  return %0 : tensor<4000xf32>
}

// A row is never cut, because it is reduced.
// CHECK: #plan.kernel<"k3_softmax", extent = 1000, grain = 91
func.func @rows(%x0: tensor<1000x30xf32>) -> tensor<1000x30xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000x30xf32>) -> tensor<1000x30xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<1000x30xf32>
    nn.yield %s : tensor<1000x30xf32>
  }
  return %0 : tensor<1000x30xf32>
}

// Reduced along the other dimension: as many columns as vectors want.
// CHECK: #plan.kernel<"k4_softmax", extent = 16, grain = 1
func.func @columns(%x0: tensor<100x1000xf32>) -> tensor<100x1000xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<100x1000xf32>) -> tensor<100x1000xf32> {
    %s = nn.softmax %a0 dim 0 : tensor<100x1000xf32>
    nn.yield %s : tensor<100x1000xf32>
  }
  return %0 : tensor<100x1000xf32>
}

// Two dimensions that cross are cut to squares, or nearly.
// CHECK: #plan.kernel<"k5_transpose", extent = 80, grain = 16
func.func @crossing(%x0: tensor<300x500xf32>) -> tensor<500x300xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<300x500xf32>) -> tensor<500x300xf32> {
    %s = nn.transpose %a0 [1, 0] : tensor<300x500xf32> -> tensor<500x300xf32>
    nn.yield %s : tensor<500x300xf32>
  }
  return %0 : tensor<500x300xf32>
}

// Short rows of a matrix whose operand is broadcast: several an iteration.
// CHECK: #plan.kernel<"k6_add", extent = 250, grain = 16
func.func @several(%x0: tensor<5000x100xf32>, %x1: tensor<100xf32>) -> tensor<5000x100xf32> {
  %0 = nn.cluster kernel (%a0 = %x0, %a1 = %x1) : (tensor<5000x100xf32>, tensor<100xf32>) -> tensor<5000x100xf32> {
    %b = nn.broadcast %a1 [1] : tensor<100xf32> -> tensor<5000x100xf32>
    %s = nn.add %a0, %b : tensor<5000x100xf32>
    nn.yield %s : tensor<5000x100xf32>
  }
  return %0 : tensor<5000x100xf32>
}

// CHECK: @k0_relu{{.*}} tiles = array<i64: 2048>}
// CHECK: @k1_exp{{.*}} tiles = array<i64: 2048>}
// CHECK: @k2_relu{{.*}} tiles = array<i64: 4000>}
// CHECK: @k3_softmax{{.*}} tiles = array<i64: 1>}
// CHECK: @k4_softmax{{.*}} tiles = array<i64: 64>}
// CHECK: @k5_transpose{{.*}} tiles = array<i64: 32, 64>}
// CHECK: @k6_add{{.*}} tiles = array<i64: 20, 100>}

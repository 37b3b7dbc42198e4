// RUN: not partita-opt %s --dist-assign-stages=whole-nodes=true 2>&1 | FileCheck %s

// A node whose ops are in two stages, and another node between them: annotations
// say nodes, and cannot say that.
// CHECK: error: annotations cannot say that nodes of several operations are cut by stages ('/a'), and with each in one stage, stages depend on each other in a cycle: take another number of stages, or --emit-partition, which can say it
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0, 1>} {
  %0 = nn.neg %x {dist.block = "B0"} : tensor<8xf32> loc("/a")
  %1 = nn.abs %0 {dist.block = "B0"} : tensor<8xf32> loc("/b")
  %2 = nn.exp %1 {dist.block = "B1"} : tensor<8xf32> loc("/a")
  return %2 : tensor<8xf32>
}

// RUN: partita-opt --lower-clusters %s | FileCheck %s

// Which operand's bytes a kernel's result may take: one that is read at the
// result's own position, or in the rows of the same iteration, and nowhere else.

// Elementwise: any operand of the result's type.
// CHECK: #plan.kernel<"k0_add", extent = {{[0-9]+}}, grain = {{[0-9]+}}, in_place = [0, 0, 1, 0]>
func.func @first(%x0: tensor<64x100xf32>, %x1: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %0 = nn.cluster kernel (%a0 = %x0, %a1 = %x1) : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x100xf32> {
    %s = nn.add %a0, %a1 : tensor<64x100xf32>
    nn.yield %s : tensor<64x100xf32>
  }
  return %0 : tensor<64x100xf32>
}

// A broadcast operand has other bytes; the second one's serve.
// CHECK: #plan.kernel<"k1_sub", extent = {{[0-9]+}}, grain = {{[0-9]+}}, in_place = [1, 0]>
func.func @second(%x0: tensor<100xf32>, %x1: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %0 = nn.cluster kernel (%a0 = %x0, %a1 = %x1) : (tensor<100xf32>, tensor<64x100xf32>) -> tensor<64x100xf32> {
    %b = nn.broadcast %a0 [1] : tensor<100xf32> -> tensor<64x100xf32>
    %s = nn.sub %a1, %b : tensor<64x100xf32>
    nn.yield %s : tensor<64x100xf32>
  }
  return %0 : tensor<64x100xf32>
}

// Earlier stages read the row that the last one writes.
// CHECK: #plan.kernel<"k2_softmax", extent = {{[0-9]+}}, grain = {{[0-9]+}}, in_place = [0, 0]>
func.func @rows(%x0: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<64x100xf32>) -> tensor<64x100xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<64x100xf32>
    nn.yield %s : tensor<64x100xf32>
  }
  return %0 : tensor<64x100xf32>
}

// Read at two positions.
// CHECK: #plan.kernel<"k3_add", extent = {{[0-9]+}}, grain = {{[0-9]+}}>
func.func @crossing(%x0: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    %t = nn.transpose %a0 [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
    %s = nn.add %a0, %t : tensor<64x64xf32>
    nn.yield %s : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// Of another type.
// CHECK: #plan.kernel<"k4_cast", extent = {{[0-9]+}}, grain = {{[0-9]+}}>
func.func @type(%x0: tensor<64x100xi32>) -> tensor<64x100xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<64x100xi32>) -> tensor<64x100xf32> {
    %s = nn.cast %a0 : tensor<64x100xi32> -> tensor<64x100xf32>
    nn.yield %s : tensor<64x100xf32>
  }
  return %0 : tensor<64x100xf32>
}


// Of two results, the one that is made last may be written upon all operands;
// the other one not upon what the last one still reads.
// CHECK: #plan.kernel<"k5_sub", extent = {{[0-9]+}}, grain = {{[0-9]+}}, in_place = [0, 1, 1, 1, 1, 0]>
func.func @two(%x0: tensor<64x100xf32>, %x1: tensor<64x100xf32>) -> (tensor<64x100xf32>, tensor<64x100xf32>) {
  %0:2 = nn.cluster kernel (%a0 = %x0, %a1 = %x1) : (tensor<64x100xf32>, tensor<64x100xf32>) -> (tensor<64x100xf32>, tensor<64x100xf32>) {
    %m = nn.exp %a1 : tensor<64x100xf32>
    %p = nn.sub %a0, %m : tensor<64x100xf32>
    nn.yield %m, %p : tensor<64x100xf32>, tensor<64x100xf32>
  }
  return %0#0, %0#1 : tensor<64x100xf32>, tensor<64x100xf32>
}

// RUN: partita-opt --lower-clusters -verify-diagnostics %s | FileCheck %s

// Which values of a kernel are put in memory. What does not fit the stack of a
// thread (64 KiB) is computed again where it is read, with a remark.

// Each exponential is computed once: largest element, exponentials, sum, result.
func.func @fits(%x0: tensor<8x10000xf32>) -> tensor<8x10000xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<8x10000xf32>) -> tensor<8x10000xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<8x10000xf32>
    nn.yield %s : tensor<8x10000xf32>
  }
  return %0 : tensor<8x10000xf32>
}

// Too many of them to be kept: the sum and the result compute their own.
func.func @lean(%x0: tensor<8x20000xf32>) -> tensor<8x20000xf32> {
  // expected-remark@+1 {{temporaries do not fit the stack of a thread: some elements are computed more than once}}
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<8x20000xf32>) -> tensor<8x20000xf32> {
    %s = nn.softmax %a0 dim 1 : tensor<8x20000xf32>
    nn.yield %s : tensor<8x20000xf32>
  }
  return %0 : tensor<8x20000xf32>
}
// Read at computed positions, a reduction is needed whole: where even that is too
// much, it is computed where it is read, in loops.
func.func @nothing(%x0: tensor<20000x2xf32>, %x1: tensor<8xi64>) -> tensor<8xf32> {
  // expected-remark@+1 {{temporaries do not fit the stack of a thread: some elements are computed more than once}}
  %0 = nn.cluster kernel (%a0 = %x0, %a1 = %x1) : (tensor<20000x2xf32>, tensor<8xi64>) -> tensor<8xf32> {
    %m = nn.reduce sum %a0 [1] : tensor<20000x2xf32> -> tensor<20000xf32>
    %s = nn.gather %m, %a1 dim 0 : tensor<20000xf32>, tensor<8xi64> -> tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @k0_softmax
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
// CHECK-LABEL: func.func @k1_softmax
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.maxnumf
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK-COUNT-2: math.exp
// CHECK-NOT: math.exp
// CHECK-LABEL: func.func @k2_reduce
// CHECK: iterator_types = ["parallel"]
// CHECK-NOT: iterator_types
// CHECK: scf.for
// CHECK: arith.addf

// RUN: partita-opt --lower-clusters --lower-kernels-to-loops %s | FileCheck %s

// Which loop of a stage runs over vectors, and how wide they are: 2048 bits, then
// 512, of the widest element, then single elements.

// Elements of 4 bytes.
func.func @f32(%x0: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000xf32>) -> tensor<1000xf32> {
    %s = nn.relu %a0 : tensor<1000xf32>
    nn.yield %s : tensor<1000xf32>
  }
  return %0 : tensor<1000xf32>
}

// Elements of 8 bytes.
func.func @f64(%x0: tensor<1000xf64>) -> tensor<1000xf64> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000xf64>) -> tensor<1000xf64> {
    %s = nn.relu %a0 : tensor<1000xf64>
    nn.yield %s : tensor<1000xf64>
  }
  return %0 : tensor<1000xf64>
}

// Elements of 1 byte.
func.func @i8(%x0: tensor<1000xi8>) -> tensor<1000xi8> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000xi8>) -> tensor<1000xi8> {
    %s = nn.add %a0, %a0 : tensor<1000xi8>
    nn.yield %s : tensor<1000xi8>
  }
  return %0 : tensor<1000xi8>
}

// By the widest type that is computed: a sum of i8 in i32 has the vectors of i32.
func.func @widest(%x0: tensor<1000xi8>) -> tensor<1000xi32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<1000xi8>) -> tensor<1000xi32> {
    %s = nn.cast %a0 : tensor<1000xi8> -> tensor<1000xi32>
    nn.yield %s : tensor<1000xi32>
  }
  return %0 : tensor<1000xi32>
}

// A reduction along rows: an accumulator for each width, combined in this order.
func.func @along(%x0: tensor<8x100xf32>) -> tensor<8xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<8x100xf32>) -> tensor<8xf32> {
    %s = nn.reduce sum %a0 [1] : tensor<8x100xf32> -> tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// A reduction along columns: vectors of results, which are reduced element by element.
func.func @across(%x0: tensor<100x64xf32>) -> tensor<64xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<100x64xf32>) -> tensor<64xf32> {
    %s = nn.reduce sum %a0 [0] : tensor<100x64xf32> -> tensor<64xf32>
    nn.yield %s : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

// A transpose: squares of 8 by 8 are turned in registers, two at a time.
func.func @crossing(%x0: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<64x48xf32>) -> tensor<48x64xf32> {
    %s = nn.transpose %a0 [1, 0] : tensor<64x48xf32> -> tensor<48x64xf32>
    nn.yield %s : tensor<48x64xf32>
  }
  return %0 : tensor<48x64xf32>
}

// Every other element: gathered only where a function is computed of it.
func.func @strided(%x0: tensor<256xf32>) -> tensor<128xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<256xf32>) -> tensor<128xf32> {
    %t = nn.slice %a0 [0] to [256] by [2] : tensor<256xf32> -> tensor<128xf32>
    %s = nn.relu %t : tensor<128xf32>
    nn.yield %s : tensor<128xf32>
  }
  return %0 : tensor<128xf32>
}

func.func @gathered(%x0: tensor<256xf32>) -> tensor<128xf32> {
  %0 = nn.cluster kernel (%a0 = %x0) : (tensor<256xf32>) -> tensor<128xf32> {
    %t = nn.slice %a0 [0] to [256] by [2] : tensor<256xf32> -> tensor<128xf32>
    %s = nn.exp %t : tensor<128xf32>
    nn.yield %s : tensor<128xf32>
  }
  return %0 : tensor<128xf32>
}

// CHECK-LABEL: func.func @k0_relu
// CHECK: step %c64
// CHECK: vector<64xf32>
// CHECK: step %c16
// CHECK: vector<16xf32>
// CHECK: step %c1
// CHECK: memref.load {{.*}}xf32>
// CHECK: memref.store
// CHECK-LABEL: func.func @k1_relu
// CHECK: step %c32
// CHECK: vector<32xf64>
// CHECK: step %c8
// CHECK: vector<8xf64>
// CHECK-NOT: memref.load
// CHECK-LABEL: func.func @k2_add
// CHECK: step %c256
// CHECK: vector<256xi8>
// CHECK: step %c64
// CHECK: vector<64xi8>
// CHECK-LABEL: func.func @k3_cast
// CHECK: step %c64
// CHECK: vector.load {{.*}}vector<64xi8>
// CHECK: arith.extsi {{.*}} vector<64xi8> to vector<64xi32>
// CHECK-LABEL: func.func @k4_reduce
// CHECK: %[[WIDE:.*]] = scf.for {{.*}} step %c64{{.*}} -> (vector<64xf32>)
// CHECK: %[[NARROW:.*]] = scf.for {{.*}} step %c16{{.*}} -> (vector<16xf32>)
// CHECK: %[[REST:.*]] = scf.for {{.*}} step %c1{{.*}} -> (f32)
// CHECK: %[[A:.*]] = vector.reduction <add>, %[[WIDE]]
// CHECK: %[[B:.*]] = vector.reduction <add>, %[[NARROW]]
// CHECK: %[[AB:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: arith.addf %[[AB]], %[[REST]]
// CHECK-LABEL: func.func @k5_reduce
// CHECK: scf.for {{.*}} step %c64
// CHECK: scf.for {{.*}} step %c1{{.*}} -> (vector<64xf32>)
// CHECK: vector.store
// CHECK-NOT: vector.reduction
// CHECK-LABEL: func.func @k6_transpose
// CHECK-COUNT-8: vector.load {{.*}}vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store {{.*}}vector<8xf32>
// CHECK-COUNT-8: vector.load {{.*}}vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store {{.*}}vector<8xf32>
// CHECK-LABEL: func.func @k7_relu
// CHECK-NOT: vector
// CHECK-LABEL: func.func @k8_exp
// CHECK: vector.gather {{.*}} into vector<64xf32>

// RUN: partita-opt --lower-clusters --lower-kernels-to-llvm %s | FileCheck %s

// A bf16 lies in memory as its bits, is computed in f32, and is rounded after
// every op, so that the numbers do not depend on what is fused.
// CHECK: llvm.func internal @k0_mul_range
// CHECK: llvm.load {{.*}} -> i16
// CHECK: %[[SUM:.*]] = llvm.fadd {{.*}} : f32
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[SUM]] : f32 to i32
// CHECK: %[[ROUNDED:.*]] = llvm.trunc {{.*}} : i32 to i16
// CHECK: %[[KEPT:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[ROUNDED]] : i1, i16
// CHECK: %[[WIDE:.*]] = llvm.zext %[[KEPT]] : i16 to i32
// CHECK: llvm.shl %[[WIDE]]
// CHECK: llvm.fmul {{.*}} : f32
// CHECK: llvm.trunc {{.*}} : i32 to i16
// CHECK: llvm.store {{.*}} : i16
func.func @chain(%x0: tensor<16xbf16>, %x1: tensor<16xbf16>) -> tensor<16xbf16> {
  %0 = nn.cluster kernel (%a0 = %x0, %a1 = %x1) : (tensor<16xbf16>, tensor<16xbf16>) -> tensor<16xbf16> {
    %s = nn.add %a0, %a1 : tensor<16xbf16>
    %t = nn.mul %s, %a1 : tensor<16xbf16>
    nn.yield %t : tensor<16xbf16>
  }
  return %0 : tensor<16xbf16>
}

// So are functions.
// CHECK: llvm.func internal @k1_tanh_range
// CHECK-COUNT-2: llvm.trunc {{.*}} : i32 to i16
// CHECK-NOT: to i16
// CHECK: llvm.func
func.func @functions(%x: tensor<16xbf16>) -> tensor<16xbf16> {
  %0 = nn.cluster kernel (%a = %x) : (tensor<16xbf16>) -> tensor<16xbf16> {
    %s = nn.exp %a : tensor<16xbf16>
    %t = nn.tanh %s : tensor<16xbf16>
    nn.yield %t : tensor<16xbf16>
  }
  return %0 : tensor<16xbf16>
}

// A float of 8 bits has no type in LLVM: its codes are widened by arithmetic on
// integers.
// CHECK: llvm.func internal @k2_cast_range
// CHECK: llvm.load {{.*}} -> vector<64xi8>
// CHECK: llvm.zext {{.*}} : vector<64xi8> to vector<64xi32>
// CHECK: llvm.store {{.*}} : vector<64xf32>
func.func @codes(%x: tensor<64xf8E4M3FN>) -> tensor<64xf32> {
  %0 = nn.cluster kernel (%a = %x) : (tensor<64xf8E4M3FN>) -> tensor<64xf32> {
    %s = nn.cast %a : tensor<64xf8E4M3FN> -> tensor<64xf32>
    nn.yield %s : tensor<64xf32>
  }
  return %0 : tensor<64xf32>
}

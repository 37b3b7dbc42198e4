// RUN: partita-opt --expand-kernel-math --split-input-file %s | FileCheck %s

// A polynomial for exp; power is left to the mathematics library.
// CHECK-LABEL: @functions
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK: math.powf
func.func @functions(%x: f32) -> (f32, f32) {
  %0 = math.exp %x : f32
  %1 = math.powf %x, %x : f32
  return %0, %1 : f32, f32
}

// CHECK-LABEL: @by_way_of_f32
// CHECK: %[[HALF:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %[[HALF]] : f32 to bf16
func.func @by_way_of_f32(%x: f64) -> bf16 {
  %0 = arith.truncf %x : f64 to bf16
  return %0 : bf16
}

// CHECK-LABEL: @choice_by_bits
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : i16
func.func @choice_by_bits(%c: i1, %x: bf16, %y: bf16) -> bf16 {
  %0 = arith.select %c, %x, %y : bf16
  return %0 : bf16
}

// CHECK-LABEL: @choice_of_buffers
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : memref<4xf16>
func.func @choice_of_buffers(%c: i1, %x: memref<4xf16>, %y: memref<4xf16>) -> memref<4xf16> {
  %0 = arith.select %c, %x, %y : memref<4xf16>
  return %0 : memref<4xf16>
}

// CHECK-LABEL: @branch_by_bits
// CHECK: scf.if %{{.*}} -> (i16)
func.func @branch_by_bits(%c: i1, %x: f16, %y: f16) -> f16 {
  %0 = scf.if %c -> f16 {
    scf.yield %x : f16
  } else {
    scf.yield %y : f16
  }
  return %0 : f16
}

// -----

// A reference is computed by the mathematics library.
// CHECK-LABEL: @reference
// CHECK: math.exp
module attributes {nn.reference} {
  func.func @reference(%x: f32) -> f32 {
    %0 = math.exp %x : f32
    return %0 : f32
  }
}

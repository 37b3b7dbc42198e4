// RUN: partita-opt --expand-cuda-functions %s | FileCheck %s

// CHECK-LABEL: @functions
// CHECK: arith.extf %{{.*}} : vector<4xf32> to vector<4xf64>
// CHECK-NOT: math.sin
// CHECK: math.fma
// CHECK: arith.truncf %{{.*}} : vector<4xf64> to vector<4xf32>
// CHECK-NOT: math.powf
// CHECK-NOT: arith.remf
// CHECK: math.sqrt %{{.*}} : f32
// CHECK-NOT: math.erf
func.func @functions(%v: vector<4xf32>, %x: f32, %y: f64) -> (vector<4xf32>, f64, f32, f32, f64) {
  %0 = math.sin %v : vector<4xf32>
  %1 = math.powf %y, %y : f64
  %2 = arith.remf %x, %x : f32
  %3 = math.sqrt %x : f32
  %4 = math.erf %y : f64
  return %0, %1, %2, %3, %4 : vector<4xf32>, f64, f32, f32, f64
}

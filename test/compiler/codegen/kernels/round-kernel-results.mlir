// RUN: partita-opt --round-kernel-results %s | FileCheck %s
// RUN: partita-opt --round-kernel-results --canonicalize %s | FileCheck %s --check-prefix=KEPT

// CHECK-LABEL: @chain
// CHECK: %[[R:.*]] = arith.truncf %{{[a-z0-9]+}} : f32 to bf16
// CHECK: arith.extf %[[R]] : bf16 to f32
// KEPT-LABEL: @chain
// KEPT: arith.truncf
// KEPT: arith.extf
func.func @chain(%x: f32) -> f32 {
  %0 = arith.truncf %x fastmath<contract> : f32 to bf16
  %1 = arith.extf %0 fastmath<contract> : bf16 to f32
  return %1 : f32
}

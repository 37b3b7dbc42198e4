// Where a stage has a target of its own, its clusters are fused by that
// backend, and priced by that device. Other stages stay as they are.
// RUN: partita-opt --dist-form-stages --fuse-clusters --dist-price-stages %s | FileCheck %s

// A launch takes 3 us on a GPU, and 2 MiB take 0.78 us at 2680 GB/s.
// CHECK: dist.mesh @d0 [0] kind "cuda" {plan.target = "cuda:sm_90"}
// CHECK: dist.mesh @d1 [1]{{$}}
// CHECK: dist.stage "F0" 0 on @d0 {{.*}} attributes {plan.target = "cuda:sm_90"} :
// CHECK:   nn.exp {{.*}} {dist.price = array<f64: 3782.519{{[0-9]*}}, 3782.519{{[0-9]*}}>, nn.cluster = #nn.cluster<0, kernel>}
// CHECK:   nn.tanh {{.*}} {nn.cluster = #nn.cluster<0, kernel>}
// CHECK: dist.stage "F1" 1 on @d1
// CHECK-NOT: plan.target
// CHECK:   nn.neg {{.*}} {dist.price = array<f64: {{7[.0e+]*, 5[.0e+]*}}>, nn.cluster = #nn.cluster<9, kernel>}
func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32>
    attributes {dist.devices = array<i64: 0, 1>, dist.device_count = 2 : i64, dist.targets = ["cuda:sm_90", "cpu"]} {
  %0 = nn.exp %x {dist.stage = 0 : i64, dist.price = array<f64: 1.0, 1.0>, dist.work_key = 5 : i64, nn.cluster = #nn.cluster<3, kernel>} : tensor<512x512xf32>
  %1 = nn.tanh %0 {dist.stage = 0 : i64, dist.price = array<f64: 2.0, 2.0>, nn.cluster = #nn.cluster<4, kernel>} : tensor<512x512xf32>
  %2 = nn.neg %1 {dist.stage = 1 : i64, dist.price = array<f64: 7.0, 5.0>, nn.cluster = #nn.cluster<9, kernel>} : tensor<512x512xf32>
  return %2 : tensor<512x512xf32>
}

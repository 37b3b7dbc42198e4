// RUN: partita-opt --split-input-file --dist-propagate --dist-reshard --dist-delay-sums %s | FileCheck %s
// RUN: partita-opt --split-input-file --dist-propagate --dist-reshard --dist-delay-sums --dist-localize %s | FileCheck %s --check-prefix=LOCAL

module {
nn.weight @w "fc2.weight" : tensor<3x8x16xf32> = dense<1.0> : tensor<3x8x16xf32>
nn.weight @v "fc.weight" : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>

// The results of two experts for each word, weighted.
// CHECK-LABEL: func.func @main
// CHECK: %[[D:.*]] = nn.expert_dot {{.*}} {dist.sharding = #dist.sharding<[{}, {}, {}] partial [#dist.partial<"tensor" sum>]>}
// CHECK-NEXT: %[[M:.*]] = nn.mul %[[D]], %arg2 {dist.sharding = #dist.sharding<[{}, {}, {}] partial [#dist.partial<"tensor" sum>]>}
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[M]] [1] {dist.sharding = #dist.sharding<[{}, {}] partial [#dist.partial<"tensor" sum>]>}
// CHECK-NEXT: %[[J:.*]] = dist.reshard %[[S]] reason "'fc2' sums over what is cut along tensor" : tensor<4x8xf32>
// CHECK-NEXT: %[[A:.*]] = nn.add %[[J]], %arg3
// CHECK: %[[E:.*]] = nn.dot {{.*}} partial
// CHECK-NEXT: %[[K:.*]] = dist.reshard %[[E]] {{.*}} : tensor<4x8xf32>
// CHECK-NEXT: nn.relu %[[K]]
// LOCAL-LABEL: func.func @main
// LOCAL: nn.expert_dot {{.*}} tensor<4x2x8xf32>, tensor<3x8x8xf32>
// LOCAL-NEXT: nn.mul
// LOCAL-NEXT: %[[S:.*]] = nn.reduce sum
// LOCAL-NEXT: dist.all_reduce sum %[[S]] {{.*}} tensor<4x8xf32>
func.func @main(%x: tensor<4x2x16xf32> {nn.name = "x"}, %e: tensor<4x2xi64> {nn.name = "e"}, %s: tensor<4x2x8xf32> {nn.name = "s"}, %b: tensor<4x8xf32> {nn.name = "b"}, %z: tensor<4x16xf32> {nn.name = "z"})
    -> (tensor<4x8xf32>, tensor<8xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {}, {"tensor"}]>} : tensor<3x8x16xf32>
  %0 = nn.expert_dot %x, %w experts %e : tensor<4x2x16xf32>, tensor<3x8x16xf32>, tensor<4x2xi64> -> tensor<4x2x8xf32> loc("fc2")
  %1 = nn.mul %0, %s : tensor<4x2x8xf32>
  %2 = nn.reduce sum %1 [1] : tensor<4x2x8xf32> -> tensor<4x8xf32>
  %3 = nn.add %2, %b : tensor<4x8xf32>
  // A function that is not linear is between the product and the sum.
  %v = nn.parameter @v {dist.sharding = #dist.sharding<[{"tensor"}, {}]>} : tensor<16x8xf32>
  %4 = nn.dot %z, %v batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32> loc("fc")
  %5 = nn.relu %4 : tensor<4x8xf32>
  %6 = nn.reduce sum %5 [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %3, %6 : tensor<4x8xf32>, tensor<8xf32>
}
}

// -----

module {
nn.weight @w "fc2.weight" : tensor<3x8x16xf32> = dense<1.0> : tensor<3x8x16xf32>

// The sum over what another axis cuts makes partial sums of its own.
// CHECK-LABEL: func.func @two_axes
// CHECK: %[[D:.*]] = nn.expert_dot {{.*}} partial [#dist.partial<"tensor" sum>]
// CHECK-NEXT: %[[J:.*]] = dist.reshard %[[D]]
// CHECK-NEXT: %[[M:.*]] = nn.mul %[[J]]
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[M]] [1] {dist.sharding = #dist.sharding<[{}, {}] partial [#dist.partial<"seq" sum>]>}
// CHECK-NEXT: dist.reshard %[[S]]
func.func @two_axes(%x: tensor<4x4x16xf32> {nn.name = "x", dist.sharding = #dist.sharding<[{}, {"seq"}, {"tensor"}]>}, %e: tensor<4x4xi64> {nn.name = "e", dist.sharding = #dist.sharding<[{}, {"seq"}]>},
    %s: tensor<4x4x8xf32> {nn.name = "s", dist.sharding = #dist.sharding<[{}, {"seq"}, {}]>}) -> tensor<4x8xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"seq" = 2>, #dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {}, {"tensor"}]>} : tensor<3x8x16xf32>
  %0 = nn.expert_dot %x, %w experts %e : tensor<4x4x16xf32>, tensor<3x8x16xf32>, tensor<4x4xi64> -> tensor<4x4x8xf32> loc("fc2")
  %1 = nn.mul %0, %s : tensor<4x4x8xf32>
  %2 = nn.reduce sum %1 [1] : tensor<4x4x8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
}

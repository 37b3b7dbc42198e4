// RUN: partita-opt -split-input-file --dist-propagate --dist-explain-collectives %s 2>&1 | FileCheck %s

// Of two layers that follow one another both have to be whole, and the bias
// between them; of one alone, its weight and its input.
// CHECK: remark: loc("fc2"): partial sums of 'fc2' are joined: each device sends 8.00 KiB a micro-batch, predicted 1.041 us; to spare that, keep 'fc1.weight', 'fc1.bias', 'fc2.weight' whole: by prediction a micro-batch takes
// CHECK: remark: loc("fc3"): partial sums of 'fc3' are joined: each device sends 8.00 KiB a micro-batch, predicted 1.041 us; to spare that, keep 'y', 'fc3.weight' whole: by prediction a micro-batch takes

nn.weight @w1 "fc1.weight" : tensor<64x256xf32> = dense<1.0> : tensor<64x256xf32>
nn.weight @b1 "fc1.bias" : tensor<256xf32> = dense<1.0> : tensor<256xf32>
nn.weight @w2 "fc2.weight" : tensor<256x64xf32> = dense<1.0> : tensor<256x64xf32>
nn.weight @w3 "fc3.weight" : tensor<64x64xf32> = dense<1.0> : tensor<64x64xf32>
func.func @main(%x: tensor<32x64xf32> {nn.name = "x"}, %y: tensor<32x64xf32> {nn.name = "y"}) -> (tensor<32x64xf32>, tensor<32x64xf32>) attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w1 = nn.parameter @w1 {dist.sharding = #dist.sharding<[{}, {"tensor"}]>} : tensor<64x256xf32>
  %b1 = nn.parameter @b1 : tensor<256xf32>
  %w2 = nn.parameter @w2 : tensor<256x64xf32>
  %w3 = nn.parameter @w3 {dist.sharding = #dist.sharding<[{"tensor"}, {}]>} : tensor<64x64xf32>
  %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<32x64xf32>, tensor<64x256xf32> -> tensor<32x256xf32> loc("fc1")
  %1 = nn.broadcast %b1 [1] : tensor<256xf32> -> tensor<32x256xf32> loc("bias")
  %2 = nn.add %0, %1 : tensor<32x256xf32> loc("add")
  %3 = nn.dot %2, %w2 batch [] x [] contract [1] x [0] : tensor<32x256xf32>, tensor<256x64xf32> -> tensor<32x64xf32> loc("fc2")
  %4 = nn.dot %y, %w3 batch [] x [] contract [1] x [0] : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc("fc3")
  return %3, %4 : tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

// Somebody says that a result is whole: it is gathered, however weights and
// inputs are cut.
// CHECK: remark: loc("fc"): parts of 'fc' are gathered: each device sends 4.00 KiB a micro-batch, predicted {{.*}}; other cuts were not tried, as the model itself says how results are cut
nn.weight @w "w" : tensor<64x64xf32> = dense<1.0> : tensor<64x64xf32>
func.func @main(%x: tensor<32x64xf32> {nn.name = "x"}) -> tensor<32x64xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {"tensor"}]>} : tensor<64x64xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] {dist.sharding = #dist.sharding<[{}, {}]>} : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc("fc")
  %1 = nn.relu %0 : tensor<32x64xf32> loc("relu")
  return %1 : tensor<32x64xf32>
}

// -----

// Repeated layers are one remark.
// CHECK: remark: loc("layer.0.fc"): parts of 'layer.0.fc' are gathered: each device sends 4.00 KiB a micro-batch, predicted {{.*}}; other cuts were not tried, as the model itself says how results are cut; 1 more like it, to 'layer.1.fc'
// CHECK-NOT: remark: loc("layer.1.fc")
nn.weight @w "w" : tensor<64x64xf32> = dense<1.0> : tensor<64x64xf32>
nn.weight @v "v" : tensor<64x64xf32> = dense<1.0> : tensor<64x64xf32>
func.func @main(%x: tensor<32x64xf32> {nn.name = "x"}) -> tensor<32x64xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w = nn.parameter @w {dist.sharding = #dist.sharding<[{}, {"tensor"}]>} : tensor<64x64xf32>
  %v = nn.parameter @v {dist.sharding = #dist.sharding<[{}, {"tensor"}]>} : tensor<64x64xf32>
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] {dist.sharding = #dist.sharding<[{}, {}]>} : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc("layer.0.fc")
  %1 = nn.dot %0, %v batch [] x [] contract [1] x [0] {dist.sharding = #dist.sharding<[{}, {}]>} : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc("layer.1.fc")
  %2 = nn.relu %1 : tensor<32x64xf32> loc("relu")
  return %2 : tensor<32x64xf32>
}

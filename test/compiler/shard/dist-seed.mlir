// RUN: split-file %s %t
// RUN: partita-opt --dist-seed=file=%t/one.yaml %t/model.mlir | FileCheck %s
// RUN: not partita-opt --dist-seed=file=%t/none.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not partita-opt --dist-seed=file=%t/rank.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not partita-opt --dist-seed=file=%t/size.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not partita-opt --dist-seed=file=%t/two.yaml %t/model.mlir 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not partita-opt --dist-assign-mesh=file=%t/summed.yaml --dist-seed=file=%t/summed.yaml %t/plain.mlir 2>&1 | FileCheck %s --check-prefix=SUMMED
// RUN: partita-opt --dist-assign-mesh=file=%t/exact.yaml --dist-seed=file=%t/exact.yaml %t/plain.mlir

// SUMMED: error: loc("fc2"): 'fc2' sums over a dimension of 'fc2.weight' that is cut along 'tensor': joined sums round differently, so the result is not reproducible; cut another dimension of it, or leave out `reproducible`
// CHECK: func.func @main(%{{.*}}: tensor<4x8xf32> {dist.sharding = #dist.sharding<[{"tensor"}, {}]>, nn.name = "x"})
// CHECK: nn.parameter @w1 {dist.sharding = #dist.sharding<[{}, {"tensor" blocks 4}]>}
// CHECK: nn.parameter @w2 {dist.sharding = #dist.sharding<[{"tensor"}, {}]>}
// NONE: none.yaml:1:9: error: no weight and no input matches 'fc3.weight'; did you mean 'fc1.weight'?
// RANK: rank.yaml:1:9: error: 'fc1.weight' has 2 dimensions, and the list is for 1: give an entry for each dimension, null where it is whole
// SIZE: size.yaml:1:25: error: dimension 0 of 'fc1.weight' has the size 8, which cannot be cut into 6 equal parts
// TWO: two.yaml:1:39: error: 'fc1.weight' is cut by another entry already

//--- one.yaml
shard: {"fc1*": [null, {tensor: 4}], "fc2.weight": [tensor, null], x: [[tensor], ~]}

//--- none.yaml
shard: {"fc3.weight": [null, null]}

//--- rank.yaml
shard: {"fc1.weight": [tensor]}

//--- size.yaml
shard: {"fc1.weight": [{tensor: 3}, null]}

//--- two.yaml
shard: {"fc1.weight": [tensor, null], "fc*": [null, tensor]}

//--- summed.yaml
mesh: {tensor: 2}
reproducible: true
shard: {"fc2.weight": [tensor, null]}

//--- exact.yaml
mesh: {tensor: 2}
reproducible: true
shard: {"fc2.weight": [null, tensor], x: [null, tensor]}

//--- model.mlir
nn.weight @w1 "fc1.weight" : tensor<8x16xf32> = dense<1.0> : tensor<8x16xf32>
nn.weight @w2 "fc2.weight" : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x8xf32> attributes {dist.axes = [#dist.axis<"stage" = 0>, #dist.axis<"tensor" = 2>]} {
  %w1 = nn.parameter @w1 : tensor<8x16xf32>
  %w2 = nn.parameter @w2 : tensor<16x8xf32>
  %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("fc1")
  %1 = nn.relu %0 : tensor<4x16xf32> loc("relu")
  %2 = nn.dot %1, %w2 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32> loc("fc2")
  return %2 : tensor<4x8xf32>
}

//--- plain.mlir
nn.weight @w1 "fc1.weight" : tensor<8x16xf32> = dense<1.0> : tensor<8x16xf32>
nn.weight @w2 "fc2.weight" : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x8xf32> {
  %w1 = nn.parameter @w1 : tensor<8x16xf32>
  %w2 = nn.parameter @w2 : tensor<16x8xf32>
  %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("fc1")
  %1 = nn.relu %0 : tensor<4x16xf32> loc("relu")
  %t = nn.transpose %w2 [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
  %2 = nn.dot %1, %t batch [] x [] contract [1] x [1] : tensor<4x16xf32>, tensor<8x16xf32> -> tensor<4x8xf32> loc("fc2")
  return %2 : tensor<4x8xf32>
}

// RUN: split-file %s %t
// RUN: partita-opt --dist-read-annotations %t/model.mlir | FileCheck %s
// RUN: partita-opt --dist-read-annotations --dist-assign-mesh=data-parallel=2 %t/model.mlir | FileCheck %s --check-prefix=DATA
// RUN: partita-opt --dist-read-annotations %t/activation.mlir | FileCheck %s --check-prefix=ACTIVATION
// RUN: partita-opt --dist-read-annotations %t/inner.mlir 2>&1 | FileCheck %s --check-prefix=INNER
// RUN: not partita-opt --dist-read-annotations %t/form.mlir 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not partita-opt --dist-read-annotations %t/apart.mlir 2>&1 | FileCheck %s --check-prefix=APART

// Devices 0 and 2 have the first stage, so the stages stand after the axis.
// CHECK-NOT: dist.annotations
// CHECK: func.func @main
// CHECK-SAME: dist.annotated_stages = {fc1 = 0 : i64, fc2 = 1 : i64}
// CHECK-SAME: dist.axes = [#dist.axis<"tensor" = 2>, #dist.axis<"stage" = 2>]
// CHECK-SAME: dist.device_count = 2
// CHECK-SAME: dist.devices = array<i64: 0, 1>
// CHECK: nn.parameter @w1 {dist.sharding = #dist.sharding<[{}, {"tensor" blocks 2}]>}
// CHECK: nn.parameter @w2 {dist.sharding = #dist.sharding<[{}, {}]>}
// DATA: dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"tensor" = 2>, #dist.axis<"stage" = 2>]
// DATA-SAME: dist.device_count = 2

// A result that does not follow from weights is cut by its own word.
// ACTIVATION: nn.dot {{.*}} {dist.sharding = #dist.sharding<[{"tensor"}, {}]>}
// INNER: remark: loc("gone"): the sharding of tensor 'h' is not taken: the compiler does not compute it as a value of its own
// FORM: error: 'dist.annotations' has another form than annotations have
// APART: error: loc("e"): the sharding of tensor 'h': the device configuration 'c' has 4 devices, and its stages are on devices 0, 3; devices 1, 2: they are no mesh

//--- model.mlir
module attributes {dist.annotations = {configuration = "c", devices = 4 : i64, nodes = [
  {node = "fc1", stage = 0 : i64, tensors = [
    {name = "fc1.weight", weight = "w1", shape = array<i64: 8, 16>, dims = [{dim = 1 : i64, sizes = array<i64: 2, 8>, parts = array<i64: 1, 2>}], devices = [array<i64: 0>, array<i64: 2>]}]},
  {node = "fc2", stage = 1 : i64, tensors = [
    {name = "fc2.weight", weight = "w2", shape = array<i64: 16, 8>, devices = [array<i64: 1, 3>]}]}]}} {
  nn.weight @w1 "fc1.weight" : tensor<8x16xf32> = dense<1.0> : tensor<8x16xf32>
  nn.weight @w2 "fc2.weight" : tensor<16x8xf32> = dense<1.0> : tensor<16x8xf32>
  func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x8xf32> {
    %w1 = nn.parameter @w1 : tensor<8x16xf32>
    %w2 = nn.parameter @w2 : tensor<16x8xf32>
    %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("fc1")
    %1 = nn.dot %0, %w2 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32> loc("fc2")
    return %1 : tensor<4x8xf32>
  }
}

//--- activation.mlir
module attributes {dist.annotations = {configuration = "c", devices = 2 : i64, nodes = [
  {node = "fc1", tensors = [
    {name = "h", result = "fc1", shape = array<i64: 4, 16>, dims = [{dim = 0 : i64, sizes = array<i64: 4>, parts = array<i64: 2>}], devices = [array<i64: 0>, array<i64: 1>]}]}]}} {
  nn.weight @w1 "fc1.weight" : tensor<8x16xf32> = dense<1.0> : tensor<8x16xf32>
  func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x16xf32> {
    %w1 = nn.parameter @w1 : tensor<8x16xf32>
    %0 = nn.dot %x, %w1 batch [] x [] contract [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("fc1")
    return %0 : tensor<4x16xf32>
  }
}

//--- inner.mlir
module attributes {dist.annotations = {configuration = "c", devices = 2 : i64, nodes = [
  {node = "gone", tensors = [
    {name = "h", result = "gone", shape = array<i64: 4, 8>, dims = [{dim = 0 : i64, sizes = array<i64: 4>, parts = array<i64: 2>}], devices = [array<i64: 0>, array<i64: 1>]}]}]}} {
  func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> tensor<4x8xf32> {
    %0 = nn.exp %x : tensor<4x8xf32> loc("e")
    return %0 : tensor<4x8xf32>
  }
}

//--- form.mlir
module attributes {dist.annotations = {configuration = "c", devices = 2 : i64, nodes = [
  {node = "e", tensors = [{name = "h", result = "e", shape = array<i64: 4>, dims = [{dim = 0 : i64, sizes = array<i64: 4>, parts = array<i64: 0>}]}]}]}} {
  func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> tensor<4xf32> {
    %0 = nn.exp %x : tensor<4xf32> loc("e")
    return %0 : tensor<4xf32>
  }
}

//--- apart.mlir
module attributes {dist.annotations = {configuration = "c", devices = 4 : i64, nodes = [
  {node = "e", stage = 0 : i64, tensors = [{name = "h", result = "e", shape = array<i64: 4>, devices = [array<i64: 0, 3>]}]},
  {node = "f", stage = 1 : i64, tensors = [{name = "i", result = "f", shape = array<i64: 4>, devices = [array<i64: 1, 2>]}]}]}} {
  func.func @main(%x: tensor<4xf32> {nn.name = "x"}) -> tensor<4xf32> {
    %0 = nn.exp %x : tensor<4xf32> loc("e")
    %1 = nn.abs %0 : tensor<4xf32> loc("f")
    return %1 : tensor<4xf32>
  }
}

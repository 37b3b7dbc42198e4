// RUN: partita-opt %s --split-input-file --dist-price-alone | FileCheck %s

// Tensors will be cut. One device computes all in each micro-batch, as one
// kernel, which the copy alone knows.
// CHECK: func.func @tensors({{.*}}) {{.*}} attributes {dist.alone_ns = array<f64: {{[1-9][0-9.e+]+}}, 0.000000e+00>,
// CHECK-NEXT: nn.exp %{{[a-z0-9]+}} :
// CHECK-NEXT: nn.tanh %{{[a-z0-9]+}} :
// CHECK-NEXT: return
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @tensors(%x: tensor<512x512xf32>) -> tensor<512x512xf32> attributes {dist.axes = [#dist.axis<"tensor" = 2>]} {
  %0 = nn.exp %x : tensor<512x512xf32>
  %1 = nn.tanh %0 : tensor<512x512xf32>
  return %1 : tensor<512x512xf32>
}

// -----

// The sum over micro-batches is each micro-batch's, and the update one of a step.
// CHECK: func.func @replicas({{.*}}) {{.*}} attributes {dist.alone_ns = array<f64: {{[1-9][0-9.e+]+}}, {{[1-9][0-9.e+]+}}>,
nn.weight @w "w" : tensor<512xf32> in "w.bin" at 0 bytes 2048 {nn.trained}
func.func @replicas(%x: tensor<512xf32>) -> (tensor<f32>, tensor<512xf32>) attributes {dist.axes = [#dist.axis<"data" = 2>]} {
  %w = nn.parameter @w : tensor<512xf32>
  %0 = nn.mul %x, %w : tensor<512xf32>
  %loss = nn.reduce sum %0 [0] : tensor<512xf32> -> tensor<f32>
  %1 = nn.sum_micro_batches %loss : tensor<f32>
  %2 = nn.sum_micro_batches %x : tensor<512xf32>
  return %1, %2 : tensor<f32>, tensor<512xf32>
}

// -----

// Nothing is joined: --dist-assign-stages has the whole model.
// CHECK: func.func @apart
// CHECK-NOT: alone_ns
func.func @apart(%x: tensor<512xf32>) -> tensor<512xf32> attributes {dist.axes = [#dist.axis<"data" = 2>]} {
  %0 = nn.exp %x : tensor<512xf32>
  return %0 : tensor<512xf32>
}

// -----

// Replicas share a batch: no device would compute this alone.
// CHECK: func.func @shared
// CHECK-NOT: alone_ns
func.func @shared(%x: tensor<512xf32>) -> tensor<256xf32> attributes {dist.axes = [#dist.axis<"replica" = 2>]} {
  %0 = dist.shard %x dim 0 blocks 1 axes ["replica"] : tensor<512xf32> -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

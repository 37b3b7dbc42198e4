// RUN: partita-opt %s --nn-split-reductions | FileCheck %s

// Sixteen results would be one core's work.
// CHECK-LABEL: func.func @images
// CHECK: %[[R:.*]] = nn.reduce sum %{{.*}} [2] : tensor<1x800x800x16xf32> -> tensor<1x800x16xf32>
// CHECK: %[[S:.*]] = nn.reduce sum %[[R]] [1] : tensor<1x800x16xf32> -> tensor<1x16xf32>
// CHECK: return %[[S]]
func.func @images(%x: tensor<1x800x800x16xf32>) -> tensor<1x16xf32> {
  %0 = nn.reduce sum %x [1, 2] : tensor<1x800x800x16xf32> -> tensor<1x16xf32>
  return %0 : tensor<1x16xf32>
}

// No more outer dimensions than keep the cores busy.
// CHECK-LABEL: func.func @all
// CHECK: %[[R:.*]] = nn.reduce max %{{.*}} [2, 3] : tensor<2x40x64x64xf32> -> tensor<2x40xf32>
// CHECK: nn.reduce max %[[R]] [0, 1] : tensor<2x40xf32> -> tensor<f32>
func.func @all(%x: tensor<2x40x64x64xf32>) -> tensor<f32> {
  %0 = nn.reduce max %x [0, 1, 2, 3] : tensor<2x40x64x64xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// Where the outer dimensions are few, a part of the innermost one joins them.
// CHECK-LABEL: func.func @few
// CHECK: %[[X:.*]] = nn.reshape %{{.*}} : tensor<4x50000xf32> -> tensor<4x10x5000xf32>
// CHECK: %[[R:.*]] = nn.reduce sum %[[X]] [2] : tensor<4x10x5000xf32> -> tensor<4x10xf32>
// CHECK: nn.reduce sum %[[R]] [0, 1] : tensor<4x10xf32> -> tensor<f32>
func.func @few(%x: tensor<4x50000xf32>) -> tensor<f32> {
  %0 = nn.reduce sum %x [0, 1] : tensor<4x50000xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// One dimension, a second step that is long by itself, and one dimension behind
// it.
// CHECK-LABEL: func.func @pieces
// CHECK: nn.reshape %{{.*}} : tensor<10000000xf32> -> tensor<1000x10000xf32>
// CHECK: nn.reduce sum %{{.*}} [1] : tensor<1000x10000xf32> -> tensor<1000xf32>
// CHECK: nn.reduce sum %{{.*}} [0] : tensor<1000xf32> -> tensor<f32>
// CHECK: nn.reduce max %{{.*}} [1] : tensor<1000000x8x4xf32> -> tensor<1000000x4xf32>
// CHECK: nn.reduce max %{{.*}} [1] : tensor<1000x1000x4xf32> -> tensor<1000x4xf32>
// CHECK: nn.reduce max %{{.*}} [0] : tensor<1000x4xf32> -> tensor<4xf32>
// CHECK: nn.reduce prod %{{.*}} [1] : tensor<80x1250x3xf32> -> tensor<80x3xf32>
// CHECK: nn.reduce prod %{{.*}} [0] : tensor<80x3xf32> -> tensor<3xf32>
func.func @pieces(%x: tensor<10000000xf32>, %y: tensor<1000000x8x4xf32>, %z: tensor<100000x3xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<3xf32>) {
  %0 = nn.reduce sum %x [0] : tensor<10000000xf32> -> tensor<f32>
  %1 = nn.reduce max %y [0, 1] : tensor<1000000x8x4xf32> -> tensor<4xf32>
  %2 = nn.reduce prod %z [0] : tensor<100000x3xf32> -> tensor<3xf32>
  return %0, %1, %2 : tensor<f32>, tensor<4xf32>, tensor<3xf32>
}

// What is left over is one more piece. Parts of sums are not rounded.
// CHECK-LABEL: func.func @prime
// CHECK: %[[WHOLE:.*]] = nn.slice %{{.*}} [0, 0] to [99937, 3]
// CHECK: nn.reshape %[[WHOLE]] : tensor<99937x3xf16> -> tensor<73x1369x3xf16>
// CHECK: nn.cast %{{.*}} : tensor<73x1369x3xf16> -> tensor<73x1369x3xf32>
// CHECK: %[[PIECES:.*]] = nn.reduce sum %{{.*}} [1] : tensor<73x1369x3xf32> -> tensor<73x3xf32>
// CHECK: nn.slice %{{.*}} [99937, 0] to [100003, 3]
// CHECK: nn.reduce sum %{{.*}} [0] : tensor<66x3xf32> -> tensor<3xf32>
// CHECK: %[[ALL:.*]] = nn.concat %[[PIECES]], %{{.*}} dim 0 : (tensor<73x3xf32>, tensor<1x3xf32>) -> tensor<74x3xf32>
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[ALL]] [0] : tensor<74x3xf32> -> tensor<3xf32>
// CHECK: nn.cast %[[SUM]] : tensor<3xf32> -> tensor<3xf16>
func.func @prime(%x: tensor<100003x3xf16>) -> tensor<3xf16> {
  %0 = nn.reduce sum %x [0] : tensor<100003x3xf16> -> tensor<3xf16>
  return %0 : tensor<3xf16>
}

// What only the sum needs is computed in pieces, too: it is one kernel with the
// first step. A value that others read stays as it is.
// CHECK-LABEL: func.func @squares
// CHECK-SAME: %[[X:.*]]: tensor<4x50000xf32>, %[[Y:.*]]: tensor<50000xf32>
// CHECK: %[[E:.*]] = nn.exp %[[X]]
// CHECK: %[[EP:.*]] = nn.reshape %[[E]] : tensor<4x50000xf32> -> tensor<4x10x5000xf32>
// CHECK: %[[YP:.*]] = nn.reshape %[[Y]] : tensor<50000xf32> -> tensor<10x5000xf32>
// CHECK: %[[YB:.*]] = nn.broadcast %[[YP]] [1, 2] : tensor<10x5000xf32> -> tensor<4x10x5000xf32>
// CHECK: %[[D:.*]] = nn.sub %[[EP]], %[[YB]] : tensor<4x10x5000xf32>
// CHECK: %[[S:.*]] = nn.mul %[[D]], %[[D]] : tensor<4x10x5000xf32>
// CHECK: nn.reduce sum %[[S]] [2] : tensor<4x10x5000xf32> -> tensor<4x10xf32>
// CHECK-NOT: nn.mul
func.func @squares(%x: tensor<4x50000xf32>, %y: tensor<50000xf32>) -> (tensor<f32>, tensor<4x50000xf32>) {
  %0 = nn.exp %x : tensor<4x50000xf32>
  %1 = nn.broadcast %y [1] : tensor<50000xf32> -> tensor<4x50000xf32>
  %2 = nn.sub %0, %1 : tensor<4x50000xf32>
  %3 = nn.mul %2, %2 : tensor<4x50000xf32>
  %4 = nn.reduce sum %3 [0, 1] : tensor<4x50000xf32> -> tensor<f32>
  return %4, %0 : tensor<f32>, tensor<4x50000xf32>
}

// Enough rows, few elements, many neighbours: one step.
// CHECK-LABEL: func.func @one_step
// CHECK-COUNT-3: nn.reduce
// CHECK-NOT: nn.reduce
func.func @one_step(%x: tensor<64x40x40xf32>, %y: tensor<1x7x7x64xf32>, %z: tensor<100x3000xf32>)
    -> (tensor<64xf32>, tensor<1x64xf32>, tensor<3000xf32>) {
  %0 = nn.reduce sum %x [1, 2] : tensor<64x40x40xf32> -> tensor<64xf32>
  %1 = nn.reduce sum %y [1, 2] : tensor<1x7x7x64xf32> -> tensor<1x64xf32>
  %2 = nn.reduce sum %z [0] : tensor<100x3000xf32> -> tensor<3000xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<1x64xf32>, tensor<3000xf32>
}

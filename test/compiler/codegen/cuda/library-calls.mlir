// RUN: partita-opt --fuse-clusters --form-clusters --lower-clusters %s | FileCheck %s
// RUN: partita-opt --fuse-clusters=library-calls=false --form-clusters --lower-clusters %s | FileCheck %s --check-prefix=NONE --implicit-check-not="plan.call"

module attributes {plan.target = "cuda:sm_90"} {
// A scale, a bias, a residual, and an activation.
// CHECK-LABEL: @epilogue
// CHECK: #plan.call<dot, operands = [#plan.view<0 shape [5, 16] strides [16, 1]>, #plan.view<1 shape [16, 8] strides [8, 1]>, #plan.view<4 shape [5, 8] strides [8, 1]>]
// CHECK-SAME: post_ops = [#plan.post_op<linear, alpha = 5.000000e-01>, #plan.post_op<add, view = #plan.view<2 shape [5, 8] strides [0, 1]>>, #plan.post_op<add, view = #plan.view<3 shape [5, 8] strides [8, 1]>>, #plan.post_op<relu>]
// NONE-LABEL: @epilogue
// NONE: #plan.kernel
func.func @epilogue(%x: tensor<5x16xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>, %r: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<5x16xf32>, tensor<16x8xf32> -> tensor<5x8xf32>
  %h = nn.constant dense<0.5> : tensor<5x8xf32>
  %1 = nn.mul %0, %h : tensor<5x8xf32>
  %2 = nn.broadcast %b [1] : tensor<8xf32> -> tensor<5x8xf32>
  %3 = nn.add %1, %2 : tensor<5x8xf32>
  %4 = nn.add %3, %r : tensor<5x8xf32>
  %5 = nn.relu %4 : tensor<5x8xf32>
  return %5 : tensor<5x8xf32>
}

// Heads inside rows are products of a batch; halves are multiplied as they are.
// CHECK-LABEL: @heads
// CHECK: #plan.call<dot, operands = [#plan.view<0 shape [4, 6, 8] strides [8, 32, 1]>, #plan.view<1 shape [4, 8, 6] strides [8, 1, 32]>, #plan.view<2 shape [4, 6, 6] strides [36, 6, 1]>]
func.func @heads(%q: tensor<6x4x8xf16>, %k: tensor<6x4x8xf16>) -> tensor<4x6x6xf16> {
  %0 = nn.dot %q, %k batch [1] x [1] contract [2] x [2] : tensor<6x4x8xf16>, tensor<6x4x8xf16> -> tensor<4x6x6xf16>
  return %0 : tensor<4x6x6xf16>
}

// Two batch dimensions that are no one number of products: the transpose stays.
// CHECK-LABEL: @batches
// CHECK: #plan.kernel<"k{{[0-9]+}}_transpose"
// CHECK: #plan.call<dot, operands = [#plan.view<0 shape [2, 4, 6, 8] strides [192, 48, 8, 1]>
func.func @batches(%q: tensor<2x6x4x8xf32>, %k: tensor<2x4x8x5xf32>) -> tensor<2x4x6x5xf32> {
  %t = nn.transpose %q [0, 2, 1, 3] : tensor<2x6x4x8xf32> -> tensor<2x4x6x8xf32>
  %0 = nn.dot %t, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x6x8xf32>, tensor<2x4x8x5xf32> -> tensor<2x4x6x5xf32>
  return %0 : tensor<2x4x6x5xf32>
}

// GELU by erf is another function than the library's, and an exponential none.
// CHECK-LABEL: @others
// CHECK: #plan.call<dot, operands = [{{.*}}post_ops = [#plan.post_op<add
// CHECK-NOT: post_op
// CHECK: #plan.kernel<"k{{[0-9]+}}_exp"
func.func @others(%x: tensor<5x16xf32>, %w: tensor<16x8xf32>, %r: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<5x16xf32>, tensor<16x8xf32> -> tensor<5x8xf32>
  %1 = nn.add %0, %r : tensor<5x8xf32>
  %2 = nn.exp %1 : tensor<5x8xf32>
  return %2 : tensor<5x8xf32>
}

// A convolution of single pixels is a product, if it takes all of them.
// CHECK-LABEL: @pixels
// CHECK: #plan.call<dot, operands = [#plan.view<0 shape [32, 8] strides [8, 1]>, #plan.view<1 shape [8, 12] strides [1, 8]>, #plan.view<3 shape [32, 12] strides [12, 1]>], post_ops = [#plan.post_op<add, view = #plan.view<2 shape [32, 12] strides [0, 1]>>, #plan.post_op<relu>]
// CHECK: #plan.call<conv, operands = [#plan.view<0 shape [2, 8, 4, 4] strides [128, 1, 32, 8]>, #plan.view<1 shape [12, 8, 1, 1] strides [8, 1, 1, 1]>, #plan.view<2 shape [2, 12, 2, 2] strides [48, 1, 24, 12]>], {{.*}}strides = [2, 2]
func.func @pixels(%x: tensor<2x4x4x8xf32>, %w: tensor<12x8x1x1xf32>, %b: tensor<12xf32>) -> (tensor<2x4x4x12xf32>, tensor<2x2x2x12xf32>) {
  %0 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<2x4x4x8xf32>, tensor<12x8x1x1xf32> -> tensor<2x4x4x12xf32>
  %1 = nn.broadcast %b [3] : tensor<12xf32> -> tensor<2x4x4x12xf32>
  %2 = nn.add %0, %1 : tensor<2x4x4x12xf32>
  %3 = nn.relu %2 : tensor<2x4x4x12xf32>
  %4 = nn.conv %x, %w channels_last strides [2, 2] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<2x4x4x8xf32>, tensor<12x8x1x1xf32> -> tensor<2x2x2x12xf32>
  return %3, %4 : tensor<2x4x4x12xf32>, tensor<2x2x2x12xf32>
}

// A convolution adds a tensor and has ReLU where it has a bias.
// CHECK-LABEL: @convolutions
// CHECK: #plan.call<conv, {{.*}}post_ops = [#plan.post_op<add, view = #plan.view<2 shape [1, 4, 6, 6] strides [0, 1, 0, 0]>>, #plan.post_op<add, view = #plan.view<3 shape [1, 4, 6, 6] strides [144, 1, 24, 4]>>, #plan.post_op<relu>]
// CHECK: #plan.call<conv
// CHECK-NOT: post_op
// CHECK: #plan.kernel<"k{{[0-9]+}}_relu"
// CHECK: #plan.kernel<"k{{[0-9]+}}_conv"
func.func @convolutions(%x: tensor<1x6x6x4xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<4xf32>, %r: tensor<1x6x6x4xf32>)
    -> (tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32>) {
  %0 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 2
    : tensor<1x6x6x4xf32>, tensor<4x2x3x3xf32> -> tensor<1x6x6x4xf32>
  %1 = nn.broadcast %b [3] : tensor<4xf32> -> tensor<1x6x6x4xf32>
  %2 = nn.add %0, %1 : tensor<1x6x6x4xf32>
  %3 = nn.add %2, %r : tensor<1x6x6x4xf32>
  %4 = nn.relu %3 : tensor<1x6x6x4xf32>
  %5 = nn.conv %4, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 2
    : tensor<1x6x6x4xf32>, tensor<4x2x3x3xf32> -> tensor<1x6x6x4xf32>
  %6 = nn.relu %5 : tensor<1x6x6x4xf32>
  // Its pads differ at both ends.
  %7 = nn.conv %6, %w channels_last strides [1, 1] dilations [1, 1] pads [2, 1] x [0, 1] groups 2
    : tensor<1x6x6x4xf32>, tensor<4x2x3x3xf32> -> tensor<1x6x6x4xf32>
  return %4, %6, %7 : tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32>, tensor<1x6x6x4xf32>
}

// The largest element of a window and the average with the border are calls, of
// images with their channels innermost or outermost; a sum, other pads and what
// follows are not.
// CHECK-LABEL: @pools
// CHECK: #plan.call<pool_max, operands = [#plan.view<0 shape [1, 4, 8, 8] strides [256, 1, 32, 4]>, #plan.view<1 shape [1, 4, 4, 4] strides [64, 1, 16, 4]>], {{.*}}strides = [2, 2], {{.*}}window = [3, 3]
// CHECK: #plan.call<pool_avg, operands = [#plan.view<0 shape [1, 4, 4, 4] strides [64, 16, 4, 1]>, #plan.view<1 shape [1, 4, 2, 2] strides [16, 4, 2, 1]>], {{.*}}window = [2, 2], {{.*}}include_pad = true
// CHECK: #plan.kernel<"k{{[0-9]+}}_window_reduce
// CHECK: #plan.kernel<"k{{[0-9]+}}_window_reduce
// NONE-LABEL: @pools
func.func @pools(%x: tensor<1x8x8x4xf32>, %y: tensor<1x4x4x4xf32>)
    -> (tensor<1x4x4x4xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x4x4xf32>) {
  %0 = nn.window_reduce max %x window [1, 3, 3, 1] strides [1, 2, 2, 1] dilations [1, 1, 1, 1] pads [0, 1, 1, 0] x [0, 1, 1, 0]
    : tensor<1x8x8x4xf32> -> tensor<1x4x4x4xf32>
  %1 = nn.window_reduce sum %y window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
    : tensor<1x4x4x4xf32> -> tensor<1x4x2x2xf32>
  %q = nn.constant dense<0.25> : tensor<1x4x2x2xf32>
  %2 = nn.mul %1, %q : tensor<1x4x2x2xf32>
  %3 = nn.window_reduce sum %y window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
    : tensor<1x4x4x4xf32> -> tensor<1x4x2x2xf32>
  %4 = nn.window_reduce max %x window [1, 3, 3, 1] strides [1, 2, 2, 1] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 1, 1, 0]
    : tensor<1x8x8x4xf32> -> tensor<1x4x4x4xf32>
  return %0, %2, %3, %4 : tensor<1x4x4x4xf32>, tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>, tensor<1x4x4x4xf32>
}

// Attention of halves with heads of multiples of 8, with a mask that is added.
// Its operands lie in rows; a mask has no step along what it is the same for.
// CHECK-LABEL: @attention
// CHECK: #plan.call<attention, operands = [#plan.view<0 shape [2, 4, 6, 8] strides [192, 8, 32, 1]>, #plan.view<1 shape [2, 4, 5, 8] strides [160, 40, 8, 1]>, #plan.view<2 shape [2, 4, 5, 16] strides [320, 80, 16, 1]>, #plan.view<4 shape [2, 4, 6, 16] strides [384, 96, 16, 1]>], details = #plan.attention<mask_add = #plan.view<3 shape [2, 4, 6, 5] strides [5, 0, 0, 1]>, {{.*}}scale = 2.500000e-01
// CHECK: #plan.kernel<"k{{[0-9]+}}_attention
// CHECK: #plan.kernel<"k{{[0-9]+}}_attention
// NONE-LABEL: @attention
func.func @attention(%x: tensor<2x6x4x8xf16>, %k: tensor<2x4x5x8xf16>, %v: tensor<2x4x5x16xf16>, %m: tensor<2x1x1x5xf16>, %y: tensor<2x4x6x8xf32>, %z: tensor<2x4x6x12xf16>)
    -> (tensor<2x4x6x16xf16>, tensor<2x4x6x8xf32>, tensor<2x4x6x12xf16>) {
  %q = nn.transpose %x [0, 2, 1, 3] : tensor<2x6x4x8xf16> -> tensor<2x4x6x8xf16>
  %0 = nn.attention %q, %k, %v mask_add %m : tensor<2x1x1x5xf16> scale 0.25
    : tensor<2x4x6x8xf16>, tensor<2x4x5x8xf16>, tensor<2x4x5x16xf16> -> tensor<2x4x6x16xf16>
  %1 = nn.attention %y, %y, %y scale 0.25 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32> -> tensor<2x4x6x8xf32>
  %2 = nn.attention %z, %z, %z scale 0.25 : tensor<2x4x6x12xf16>, tensor<2x4x6x12xf16>, tensor<2x4x6x12xf16> -> tensor<2x4x6x12xf16>
  return %0, %1, %2 : tensor<2x4x6x16xf16>, tensor<2x4x6x8xf32>, tensor<2x4x6x12xf16>
}

// Integers lie side by side along the sum on both sides, or a kernel multiplies
// them; so it does numbers of 64 bits.
// CHECK-LABEL: @integers
// CHECK: #plan.call<dot, operands = [#plan.view<0 shape [3, 8] strides [8, 1]>, #plan.view<1 shape [8, 4] strides [1, 8]>
// CHECK: #plan.kernel<"k{{[0-9]+}}_dot"
// CHECK: #plan.kernel<"k{{[0-9]+}}_dot"
// CHECK: #plan.kernel<"k{{[0-9]+}}_dot"
func.func @integers(%x: tensor<3x8xi8>, %u: tensor<3x8xui8>, %w: tensor<4x8xi8>, %v: tensor<8x4xi8>, %y: tensor<3x8xf64>, %z: tensor<8x4xf64>)
    -> (tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf64>) {
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [1] : tensor<3x8xi8>, tensor<4x8xi8> -> tensor<3x4xi32>
  %1 = nn.dot %x, %v batch [] x [] contract [1] x [0] : tensor<3x8xi8>, tensor<8x4xi8> -> tensor<3x4xi32>
  %2 = nn.dot %u, %w batch [] x [] contract [1] x [1] : tensor<3x8xui8>, tensor<4x8xi8> -> tensor<3x4xi32>
  %3 = nn.dot %y, %z batch [] x [] contract [1] x [0] : tensor<3x8xf64>, tensor<8x4xf64> -> tensor<3x4xf64>
  return %0, %1, %2, %3 : tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf64>
}
}

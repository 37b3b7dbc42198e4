// RUN: partita-opt --fuse-clusters %s | FileCheck %s
// RUN: partita-opt --fuse-clusters=reference=true %s | FileCheck %s --check-prefix=PLAIN --implicit-check-not="nn.cluster = "

// A convolution takes in bias, residual and activation.
// CHECK-LABEL: @conv_epilogue
func.func @conv_epilogue(%x: tensor<1x3x8x8xf32>, %r: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = nn.parameter @w : tensor<4x3x3x3xf32>
  %b = nn.parameter @b : tensor<4xf32>
  // CHECK: nn.conv {{.*}} {nn.cluster = [[C:.*]]}
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
  // CHECK: nn.broadcast {{.*}}nn.cluster = [[C]]
  %1 = nn.broadcast %b [1] : tensor<4xf32> -> tensor<1x4x8x8xf32>
  // CHECK: nn.add {{.*}} {nn.cluster = [[C]]}
  %2 = nn.add %0, %1 : tensor<1x4x8x8xf32>
  // CHECK: nn.add {{.*}} {nn.cluster = [[C]]}
  %3 = nn.add %2, %r : tensor<1x4x8x8xf32>
  // CHECK: nn.relu {{.*}} {nn.cluster = [[C]]}
  %4 = nn.relu %3 : tensor<1x4x8x8xf32>
  return %4 : tensor<1x4x8x8xf32>
}
nn.weight @w "w" : tensor<4x3x3x3xf32> = dense<0.0> : tensor<4x3x3x3xf32>
nn.weight @b "b" : tensor<4xf32> = dense<0.0> : tensor<4xf32>

// GELU is one step, also where its argument has another shape at each use.
// CHECK-LABEL: @gelu_of_a_view
// CHECK: nn.dot {{.*}} {nn.cluster = [[C:.*]]}
// CHECK: nn.tanh {{.*}} {nn.cluster = [[C]]}
// CHECK: nn.mul %{{.*}}, %{{.*}} {nn.cluster = [[C]]}
// CHECK: nn.mul %{{.*}}, %{{.*}} {nn.cluster = [[C]]}
// CHECK-NEXT: return
func.func @gelu_of_a_view(%x: tensor<10x16xf32>, %y: tensor<16x8xf32>) -> tensor<2x5x8xf32> {
  %0 = nn.dot %x, %y batch [] x [] contract [1] x [0] : tensor<10x16xf32>, tensor<16x8xf32> -> tensor<10x8xf32>
  %1 = nn.reshape %0 : tensor<10x8xf32> -> tensor<2x5x8xf32>
  %h = nn.constant dense<0.5> : tensor<2x5x8xf32>
  %c = nn.constant dense<0.044715> : tensor<2x5x8xf32>
  %s = nn.constant dense<0.797884583> : tensor<2x5x8xf32>
  %o = nn.constant dense<1.0> : tensor<2x5x8xf32>
  %2 = nn.mul %1, %1 : tensor<2x5x8xf32>
  %3 = nn.mul %2, %1 : tensor<2x5x8xf32>
  %4 = nn.mul %3, %c : tensor<2x5x8xf32>
  %5 = nn.add %1, %4 : tensor<2x5x8xf32>
  %6 = nn.mul %5, %s : tensor<2x5x8xf32>
  %7 = nn.tanh %6 : tensor<2x5x8xf32>
  %8 = nn.add %7, %o : tensor<2x5x8xf32>
  %9 = nn.mul %1, %h : tensor<2x5x8xf32>
  %10 = nn.mul %9, %8 : tensor<2x5x8xf32>
  return %10 : tensor<2x5x8xf32>
}

// A convolution of integers takes in nothing.
// CHECK-LABEL: @integer_bias
func.func @integer_bias(%x: tensor<1x3x8x8xui8>, %b: tensor<4xi32>) -> tensor<1x4x8x8xi32> {
  %w = nn.constant dense<1> : tensor<4x3x3x3xi8>
  // CHECK: nn.conv {{.*}} {nn.cluster = #nn.cluster<0, call>}
  %0 = nn.conv %x, %w channels_first strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x3x8x8xui8>, tensor<4x3x3x3xi8> -> tensor<1x4x8x8xi32>
  %1 = nn.broadcast %b [1] : tensor<4xi32> -> tensor<1x4x8x8xi32>
  // CHECK: nn.add {{.*}} {nn.cluster = #nn.cluster<1, kernel>}
  %2 = nn.add %0, %1 : tensor<1x4x8x8xi32>
  return %2 : tensor<1x4x8x8xi32>
}

// What the convolution adds is not needed after it: it may add in its bytes.
// CHECK-LABEL: @accumulates
func.func @accumulates(%x: tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32> {
  %w = nn.parameter @w1 : tensor<4x4x1x1xf32>
  // CHECK: nn.exp
  %r = nn.exp %x : tensor<1x4x8x8xf32>
  // CHECK-NEXT: nn.conv
  %0 = nn.conv %r, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.conv %0, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  // CHECK: nn.add {{.*}}nn.accumulate
  %2 = nn.add %r, %1 : tensor<1x4x8x8xf32>
  return %2 : tensor<1x4x8x8xf32>
}

// An argument of the model, needed later, or under another shape: it may not.
// CHECK-LABEL: @does_not_accumulate
// CHECK-NOT: nn.accumulate
// CHECK: return
func.func @does_not_accumulate(%x: tensor<1x4x8x8xf32>, %y: tensor<256xf32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %w = nn.parameter @w1 : tensor<4x4x1x1xf32>
  %r = nn.exp %x : tensor<1x4x8x8xf32>
  %0 = nn.conv %r, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %1 = nn.add %0, %x : tensor<1x4x8x8xf32>
  %2 = nn.conv %1, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %3 = nn.add %r, %2 : tensor<1x4x8x8xf32>
  %4 = nn.exp %y : tensor<256xf32>
  %5 = nn.conv %3, %w channels_first strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %6 = nn.reshape %4 : tensor<256xf32> -> tensor<1x4x8x8xf32>
  %7 = nn.add %5, %6 : tensor<1x4x8x8xf32>
  return %7, %r : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}
nn.weight @w1 "w1" : tensor<4x4x1x1xf32> = dense<0.0> : tensor<4x4x1x1xf32>

// Many windows of 3x3 and many channels: Winograd's method. Not with a stride,
// not with few channels, and not if something else is added or sums have to be
// exact.
// CHECK-LABEL: @winograd
func.func @winograd(%x: tensor<1x56x56x64xf32>) -> (tensor<1x56x56x64xf32>, tensor<1x28x28x64xf32>, tensor<1x56x56x16xf32>, tensor<1x56x56x64xf32>, tensor<1x64x56x56xi32>) {
  %w = nn.parameter @w3 : tensor<64x64x3x3xf32>
  %v = nn.parameter @w4 : tensor<16x64x3x3xf32>
  // CHECK: nn.conv {{.*}}nn.winograd
  %0 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x56x56x64xf32>, tensor<64x64x3x3xf32> -> tensor<1x56x56x64xf32>
  %1 = nn.relu %0 : tensor<1x56x56x64xf32>
  // CHECK-NOT: nn.winograd
  // CHECK: return
  %2 = nn.conv %x, %w channels_last strides [2, 2] dilations [1, 1] pads [1, 1] x [0, 0] groups 1
    : tensor<1x56x56x64xf32>, tensor<64x64x3x3xf32> -> tensor<1x28x28x64xf32>
  %3 = nn.conv %x, %v channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x56x56x64xf32>, tensor<16x64x3x3xf32> -> tensor<1x56x56x16xf32>
  %4 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x56x56x64xf32>, tensor<64x64x3x3xf32> -> tensor<1x56x56x64xf32>
  %5 = nn.add %4, %x : tensor<1x56x56x64xf32>
  %6 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x56x56x64xf32>, tensor<64x64x3x3xf32> -> tensor<1x56x56x64xf32>
  %7 = nn.transpose %6 [0, 3, 1, 2] : tensor<1x56x56x64xf32> -> tensor<1x64x56x56xf32>
  %8 = nn.cast %7 : tensor<1x64x56x56xf32> -> tensor<1x64x56x56xi32>
  return %1, %2, %3, %5, %8 : tensor<1x56x56x64xf32>, tensor<1x28x28x64xf32>, tensor<1x56x56x16xf32>, tensor<1x56x56x64xf32>, tensor<1x64x56x56xi32>
}
nn.weight @w3 "w3" : tensor<64x64x3x3xf32> = dense<0.0> : tensor<64x64x3x3xf32>
nn.weight @w4 "w4" : tensor<16x64x3x3xf32> = dense<0.0> : tensor<16x64x3x3xf32>

// GELU, however it is written, is one step of the library's.
// CHECK-LABEL: @gelu
func.func @gelu(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %half = nn.constant dense<0.5> : tensor<8x32xf32>
  %one = nn.constant dense<1.0> : tensor<8x32xf32>
  %root = nn.constant dense<1.41421354> : tensor<8x32xf32>
  // CHECK: nn.dot {{.*}} {nn.cluster = [[C:.*]]}
  %0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : tensor<8x16xf32>, tensor<16x32xf32> -> tensor<8x32xf32>
  // CHECK: nn.div {{.*}} {nn.cluster = [[C]]}
  %1 = nn.div %0, %root : tensor<8x32xf32>
  %2 = nn.erf %1 : tensor<8x32xf32>
  %3 = nn.add %2, %one : tensor<8x32xf32>
  %4 = nn.mul %0, %3 : tensor<8x32xf32>
  // CHECK: nn.mul {{.*}} {nn.cluster = [[C]]}
  // CHECK: nn.mul {{.*}} {nn.cluster = [[C]]}
  %5 = nn.mul %4, %half : tensor<8x32xf32>
  return %5 : tensor<8x32xf32>
}

// Attention reads its operands where one buffer has them all.
// CHECK-LABEL: @attention
func.func @attention(%qkv: tensor<2x8x192xf32>) -> tensor<2x8x64xf32> {
  // CHECK-COUNT-3: nn.slice {{.*}}nn.cluster = [[C:#nn.cluster<0, call>]]
  %q0 = nn.slice %qkv [0, 0, 0] to [2, 8, 64] by [1, 1, 1] : tensor<2x8x192xf32> -> tensor<2x8x64xf32>
  %k0 = nn.slice %qkv [0, 0, 64] to [2, 8, 128] by [1, 1, 1] : tensor<2x8x192xf32> -> tensor<2x8x64xf32>
  %v0 = nn.slice %qkv [0, 0, 128] to [2, 8, 192] by [1, 1, 1] : tensor<2x8x192xf32> -> tensor<2x8x64xf32>
  %q1 = nn.reshape %q0 : tensor<2x8x64xf32> -> tensor<2x8x4x16xf32>
  %k1 = nn.reshape %k0 : tensor<2x8x64xf32> -> tensor<2x8x4x16xf32>
  %v1 = nn.reshape %v0 : tensor<2x8x64xf32> -> tensor<2x8x4x16xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  // CHECK: nn.attention {{.*}}nn.cluster = [[C]]
  %a = nn.attention %q, %k, %v scale 0.25 : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  // CHECK: nn.transpose {{.*}}nn.cluster = [[C]]
  %t = nn.transpose %a [0, 2, 1, 3] : tensor<2x4x8x16xf32> -> tensor<2x8x4x16xf32>
  // CHECK: nn.reshape {{.*}}nn.cluster = [[C]]
  %r = nn.reshape %t : tensor<2x8x4x16xf32> -> tensor<2x8x64xf32>
  return %r : tensor<2x8x64xf32>
}

// Two pointwise ops on the same elements would be a cluster; but the second
// needs a product of what the first gives, so a path would leave the cluster and
// come back.
// CHECK-LABEL: @convex
func.func @convex(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  // CHECK: nn.exp {{.*}}nn.cluster = #nn.cluster<[[A:[0-9]+]], kernel>
  %0 = nn.exp %x : tensor<4x5xf32>
  // CHECK: nn.dot
  %1 = nn.dot %0, %0 batch [] x [] contract [1] x [1] : tensor<4x5xf32>, tensor<4x5xf32> -> tensor<4x4xf32>
  %2 = nn.slice %1 [0, 0] to [4, 1] by [1, 1] : tensor<4x4xf32> -> tensor<4x1xf32>
  %3 = nn.broadcast %2 [0, 1] : tensor<4x1xf32> -> tensor<4x5xf32>
  // CHECK-NOT: nn.cluster<[[A]],
  // CHECK: return
  %4 = nn.mul %0, %3 : tensor<4x5xf32>
  return %4 : tensor<4x5xf32>
}

// What is computed once stays apart from what is computed in each micro-batch,
// and so does what depends on a state.
// CHECK-LABEL: @rates
func.func @rates(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = nn.parameter @b : tensor<4xf32>
  %t = nn.parameter state @t : tensor<4xf32>
  // CHECK: nn.exp {{.*}}nn.cluster<[[A:[0-9]+]], kernel>
  %0 = nn.exp %b : tensor<4xf32>
  // CHECK-NOT: nn.cluster<[[A]],
  // CHECK: nn.mul {{.*}}nn.cluster<[[B:[0-9]+]], kernel>
  %1 = nn.mul %t, %0 : tensor<4xf32>
  // CHECK-NOT: nn.cluster<[[A]],
  // CHECK-NOT: nn.cluster<[[B]],
  // CHECK: nn.add {{.*}}nn.cluster
  %2 = nn.add %x, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
nn.weight state @t "t" : tensor<4xf32> = dense<0.0> : tensor<4xf32>

// A layer norm is one cluster with the sum before it.
// CHECK-LABEL: @layer_norm
// CHECK-NOT: nn.cluster<1
func.func @layer_norm(%a: tensor<1x9x100xf32>, %b: tensor<1x9x100xf32>, %g: tensor<100xf32>) -> tensor<1x9x100xf32> {
  %n = nn.constant dense<100.0> : tensor<1x9x1xf32>
  %x = nn.add %a, %b : tensor<1x9x100xf32>
  %s = nn.reduce sum %x [2] : tensor<1x9x100xf32> -> tensor<1x9xf32>
  %k = nn.reshape %s : tensor<1x9xf32> -> tensor<1x9x1xf32>
  %m = nn.div %k, %n : tensor<1x9x1xf32>
  %mb = nn.broadcast %m [0, 1, 2] : tensor<1x9x1xf32> -> tensor<1x9x100xf32>
  %c = nn.sub %x, %mb : tensor<1x9x100xf32>
  %q = nn.mul %c, %c : tensor<1x9x100xf32>
  %ss = nn.reduce sum %q [2] : tensor<1x9x100xf32> -> tensor<1x9xf32>
  %sk = nn.reshape %ss : tensor<1x9xf32> -> tensor<1x9x1xf32>
  %v = nn.div %sk, %n : tensor<1x9x1xf32>
  %d = nn.sqrt %v : tensor<1x9x1xf32>
  %db = nn.broadcast %d [0, 1, 2] : tensor<1x9x1xf32> -> tensor<1x9x100xf32>
  %e = nn.div %c, %db : tensor<1x9x100xf32>
  %gb = nn.broadcast %g [2] : tensor<100xf32> -> tensor<1x9x100xf32>
  // CHECK: nn.mul {{.*}} {nn.cluster = #nn.cluster<0, kernel>} : tensor<1x9x100xf32>
  // CHECK: nn.mul {{.*}} {nn.cluster = #nn.cluster<0, kernel>} : tensor<1x9x100xf32>
  %r = nn.mul %e, %gb : tensor<1x9x100xf32>
  return %r : tensor<1x9x100xf32>
}

// A convolution that gives one vector of channels reads few planes as they lie;
// others get the channels innermost first.
// CHECK-LABEL: @reads_planes
func.func @reads_planes(%x: tensor<1x3x8x8xf32>, %y: tensor<1x3x8x8xf32>) -> (tensor<1x8x8x16xf32>, tensor<1x8x8x32xf32>) {
  %w = nn.parameter @w5 : tensor<16x3x3x3xf32>
  %v = nn.parameter @w6 : tensor<32x3x3x3xf32>
  // CHECK: nn.transpose {{.*}}nn.cluster = [[P:.*]]}
  %0 = nn.transpose %x [0, 2, 3, 1] : tensor<1x3x8x8xf32> -> tensor<1x8x8x3xf32>
  // CHECK: nn.conv {{.*}}nn.cluster = [[P]]}
  %1 = nn.conv %0, %w channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x8x8x3xf32>, tensor<16x3x3x3xf32> -> tensor<1x8x8x16xf32>
  // CHECK: nn.transpose %arg1 [0, 2, 3, 1] :
  %2 = nn.transpose %y [0, 2, 3, 1] : tensor<1x3x8x8xf32> -> tensor<1x8x8x3xf32>
  // CHECK: nn.conv
  %3 = nn.conv %2, %v channels_last strides [1, 1] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x8x8x3xf32>, tensor<32x3x3x3xf32> -> tensor<1x8x8x32xf32>
  return %1, %3 : tensor<1x8x8x16xf32>, tensor<1x8x8x32xf32>
}
nn.weight @w5 "w5" : tensor<16x3x3x3xf32> = dense<0.0> : tensor<16x3x3x3xf32>
nn.weight @w6 "w6" : tensor<32x3x3x3xf32> = dense<0.0> : tensor<32x3x3x3xf32>

// What the library is not known to compute rightly is no epilogue of a
// convolution: an operand that lies along the width, or over the images.
// CHECK-LABEL: @odd_operands
func.func @odd_operands(%x: tensor<2x8x8x4xf32>, %v: tensor<8xf32>, %i: tensor<2xf32>) -> (tensor<2x8x8x4xf32>, tensor<2x8x8x4xf32>) {
  %w = nn.parameter @w1 : tensor<4x4x1x1xf32>
  // CHECK: nn.conv {{.*}}nn.cluster = [[A:.*]]}
  %0 = nn.conv %x, %w channels_last strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<2x8x8x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x8x8x4xf32>
  %1 = nn.broadcast %v [2] : tensor<8xf32> -> tensor<2x8x8x4xf32>
  // CHECK-NOT: nn.mul {{.*}}nn.cluster = [[A]]}
  // CHECK: nn.mul {{.*}}nn.cluster = {{.*}}}
  %2 = nn.mul %0, %1 : tensor<2x8x8x4xf32>
  // CHECK: nn.conv {{.*}}nn.cluster = [[B:.*]]}
  %3 = nn.conv %2, %w channels_last strides [1, 1] dilations [1, 1] pads [0, 0] x [0, 0] groups 1
    : tensor<2x8x8x4xf32>, tensor<4x4x1x1xf32> -> tensor<2x8x8x4xf32>
  %4 = nn.broadcast %i [0] : tensor<2xf32> -> tensor<2x8x8x4xf32>
  // CHECK-NOT: nn.max {{.*}}nn.cluster = [[B]]}
  // CHECK: nn.max {{.*}}nn.cluster = {{.*}}}
  %5 = nn.max %3, %4 : tensor<2x8x8x4xf32>
  return %2, %5 : tensor<2x8x8x4xf32>, tensor<2x8x8x4xf32>
}

// What computes a cluster is decided here: a small window with channels outside
// is a kernel, one with channels innermost a call.
// CHECK-LABEL: @kinds
// PLAIN-LABEL: @kinds
func.func @kinds(%x: tensor<1x8x6x6xf32>, %y: tensor<1x6x6x8xf32>, %z: tensor<2x5xf32>) -> (tensor<1x8x3x3xf32>, tensor<1x3x3x8xf32>, tensor<2x3xi64>) {
  // CHECK: nn.window_reduce max %arg0
  // CHECK-NOT: nn.cluster
  // CHECK-SAME: tensor<1x8x3x3xf32>
  %0 = nn.window_reduce max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0] : tensor<1x8x6x6xf32> -> tensor<1x8x3x3xf32>
  // CHECK: nn.window_reduce max %arg1 {{.*}}nn.cluster = #nn.cluster<{{[0-9]+}}, call>
  %1 = nn.window_reduce max %y window [1, 2, 2, 1] strides [1, 2, 2, 1] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0] : tensor<1x6x6x8xf32> -> tensor<1x3x3x8xf32>
  // As a reference, only what no loops of ours compute is a call.
  // PLAIN: nn.top_k {{.*}}nn.cluster = #nn.cluster<0, call>
  %2 = nn.top_k largest %z : tensor<2x5xf32> -> tensor<2x3xi64>
  return %0, %1, %2 : tensor<1x8x3x3xf32>, tensor<1x3x3x8xf32>, tensor<2x3xi64>
}

// A sum over windows is an average, if it is divided by the number of elements
// that are no border. The call knows that number, and reads none.
// CHECK-LABEL: @averages
func.func @averages(%x: tensor<1x3x4x2xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) {
  // CHECK: nn.window_reduce {{.*}}nn.cluster = [[A:#nn.cluster<[0-9]+, call>]]}
  // CHECK: nn.constant dense{{.*}}nn.cluster = [[A]]}
  // CHECK: nn.broadcast {{.*}}nn.cluster = [[A]]}
  // CHECK: nn.div {{.*}}nn.cluster = [[A]]}
  %0 = nn.window_reduce sum %x window [1, 3, 3, 1] strides [1, 1, 1, 1] dilations [1, 1, 1, 1] pads [0, 1, 1, 0] x [0, 1, 1, 0] : tensor<1x3x4x2xf32> -> tensor<1x3x4x2xf32>
  %c = nn.constant dense<[[4.0, 6.0, 6.0, 4.0], [6.0, 9.0, 9.0, 6.0], [4.0, 6.0, 6.0, 4.0]]> : tensor<3x4xf32>
  %d = nn.broadcast %c [1, 2] : tensor<3x4xf32> -> tensor<1x3x4x2xf32>
  %1 = nn.div %0, %d : tensor<1x3x4x2xf32>
  // One number is another one.
  // CHECK: nn.window_reduce
  // CHECK-NOT: call
  // CHECK: return
  %2 = nn.window_reduce sum %x window [1, 3, 3, 1] strides [1, 1, 1, 1] dilations [1, 1, 1, 1] pads [0, 1, 1, 0] x [0, 1, 1, 0] : tensor<1x3x4x2xf32> -> tensor<1x3x4x2xf32>
  %e = nn.constant dense<[[4.0, 6.0, 6.0, 4.0], [6.0, 9.0, 9.0, 6.0], [4.0, 6.0, 6.0, 5.0]]> : tensor<3x4xf32>
  %f = nn.broadcast %e [1, 2] : tensor<3x4xf32> -> tensor<1x3x4x2xf32>
  %3 = nn.div %2, %f : tensor<1x3x4x2xf32>
  return %1, %3 : tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>
}

// RUN: partita-opt %s | partita-opt | FileCheck %s
// RUN: partita-opt %s --mlir-print-op-generic | partita-opt | FileCheck %s

// CHECK: nn.weight @w "layer.w" : tensor<4x3x3x3xf32> in "model.onnx" at 128 bytes 432
nn.weight @w "layer.w" : tensor<4x3x3x3xf32> in "model.onnx" at 128 bytes 432
// CHECK: nn.weight @s "scale" : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
nn.weight @s "scale" : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
// CHECK: nn.weight state @t "count" : tensor<2xf32> = dense<0.000000e+00> : tensor<2xf32>
nn.weight state @t "count" : tensor<2xf32> = dense<0.0> : tensor<2xf32>

// CHECK-LABEL: func.func @pointwise
func.func @pointwise(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %i: tensor<2x3xi64>, %p: tensor<2x3xi1>) {
  // CHECK: nn.abs %{{.*}} : tensor<2x3xf32>
  %0 = nn.abs %x : tensor<2x3xf32>
  // CHECK: nn.neg
  %1 = nn.neg %x : tensor<2x3xf32>
  // CHECK: nn.relu
  %2 = nn.relu %x : tensor<2x3xf32>
  // CHECK: nn.sign
  %3 = nn.sign %x : tensor<2x3xf32>
  // CHECK: nn.not %{{.*}} : tensor<2x3xi1>
  %4 = nn.not %p : tensor<2x3xi1>
  // CHECK: nn.acos 
  %acos = nn.acos %x : tensor<2x3xf32>
  // CHECK: nn.acosh 
  %acosh = nn.acosh %x : tensor<2x3xf32>
  // CHECK: nn.asin 
  %asin = nn.asin %x : tensor<2x3xf32>
  // CHECK: nn.asinh 
  %asinh = nn.asinh %x : tensor<2x3xf32>
  // CHECK: nn.atanh 
  %atanh = nn.atanh %x : tensor<2x3xf32>
  // CHECK: nn.cosh 
  %cosh = nn.cosh %x : tensor<2x3xf32>
  // CHECK: nn.sinh 
  %sinh = nn.sinh %x : tensor<2x3xf32>
  // CHECK: nn.tan 
  %tan = nn.tan %x : tensor<2x3xf32>
  // CHECK: nn.atan
  %atan = nn.atan %x : tensor<2x3xf32>
  // CHECK: nn.ceil
  %5 = nn.ceil %x : tensor<2x3xf32>
  // CHECK: nn.cos
  %6 = nn.cos %x : tensor<2x3xf32>
  // CHECK: nn.erf
  %7 = nn.erf %x : tensor<2x3xf32>
  // CHECK: nn.exp
  %8 = nn.exp %x : tensor<2x3xf32>
  // CHECK: nn.floor
  %9 = nn.floor %x : tensor<2x3xf32>
  // CHECK: nn.log
  %10 = nn.log %x : tensor<2x3xf32>
  // CHECK: nn.logistic
  %11 = nn.logistic %x : tensor<2x3xf32>
  // CHECK: nn.reciprocal
  %12 = nn.reciprocal %x : tensor<2x3xf32>
  // CHECK: nn.round_even
  %13 = nn.round_even %x : tensor<2x3xf32>
  // CHECK: nn.rsqrt
  %14 = nn.rsqrt %x : tensor<2x3xf32>
  // CHECK: nn.sin
  %15 = nn.sin %x : tensor<2x3xf32>
  // CHECK: nn.sqrt
  %16 = nn.sqrt %x : tensor<2x3xf32>
  // CHECK: nn.tanh
  %17 = nn.tanh %x : tensor<2x3xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<2x3xf32>
  %18 = nn.add %x, %y : tensor<2x3xf32>
  // CHECK: nn.sub
  %19 = nn.sub %x, %y : tensor<2x3xf32>
  // CHECK: nn.mul
  %20 = nn.mul %x, %y : tensor<2x3xf32>
  // CHECK: nn.div
  %21 = nn.div %x, %y : tensor<2x3xf32>
  // CHECK: nn.rem
  %22 = nn.rem %x, %y : tensor<2x3xf32>
  // CHECK: nn.pow
  %23 = nn.pow %x, %y : tensor<2x3xf32>
  // CHECK: nn.max
  %24 = nn.max %x, %y : tensor<2x3xf32>
  // CHECK: nn.min
  %25 = nn.min %x, %y : tensor<2x3xf32>
  // CHECK: nn.and %{{.*}}, %{{.*}} : tensor<2x3xi64>
  %26 = nn.and %i, %i : tensor<2x3xi64>
  // CHECK: nn.or
  %27 = nn.or %i, %i : tensor<2x3xi64>
  // CHECK: nn.xor
  %28 = nn.xor %i, %i : tensor<2x3xi64>
  // CHECK: nn.shift_left
  %left = nn.shift_left %i, %i : tensor<2x3xi64>
  // CHECK: nn.shift_right
  %right = nn.shift_right %i, %i : tensor<2x3xi64>
  // CHECK: nn.bitcast %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi32>
  %bits = nn.bitcast %x : tensor<2x3xf32> -> tensor<2x3xi32>
  // CHECK: nn.compare le %{{.*}}, %{{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
  %29 = nn.compare le %x, %y : tensor<2x3xf32> -> tensor<2x3xi1>
  // CHECK: nn.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3xi1>, tensor<2x3xf32>
  %30 = nn.select %p, %x, %y : tensor<2x3xi1>, tensor<2x3xf32>
  // CHECK: nn.cast %{{.*}} : tensor<2x3xf32> -> tensor<2x3xf8E4M3FN>
  %31 = nn.cast %x : tensor<2x3xf32> -> tensor<2x3xf8E4M3FN>
  // CHECK: nn.cast %{{.*}} {saturate = false} : tensor<2x3xf32> -> tensor<2x3xui4>
  %32 = nn.cast %x {saturate = false} : tensor<2x3xf32> -> tensor<2x3xui4>
  return
}

// CHECK-LABEL: func.func @shape
func.func @shape(%x: tensor<2x3x4xf32>, %i: tensor<5xi64>, %s: tensor<f32>) {
  // CHECK: nn.reshape %{{.*}} : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %0 = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  // CHECK: nn.transpose %{{.*}} [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %1 = nn.transpose %x [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  // CHECK: nn.broadcast %{{.*}} [0, 2, 3] : tensor<2x3x4xf32> -> tensor<2x7x3x4xf32>
  %2 = nn.broadcast %x [0, 2, 3] : tensor<2x3x4xf32> -> tensor<2x7x3x4xf32>
  // CHECK: nn.slice %{{.*}} [0, 1, 0] to [2, 3, 4] by [1, 1, 3] : tensor<2x3x4xf32> -> tensor<2x2x2xf32>
  %3 = nn.slice %x [0, 1, 0] to [2, 3, 4] by [1, 1, 3] : tensor<2x3x4xf32> -> tensor<2x2x2xf32>
  // CHECK: nn.reverse %{{.*}} [2] : tensor<2x3x4xf32>
  %4 = nn.reverse %x [2] : tensor<2x3x4xf32>
  // CHECK: nn.pad %{{.*}}, %{{.*}} low [0, 1, 0] high [1, 0, 0] : tensor<2x3x4xf32>, tensor<f32> -> tensor<3x4x4xf32>
  %5 = nn.pad %x, %s low [0, 1, 0] high [1, 0, 0] : tensor<2x3x4xf32>, tensor<f32> -> tensor<3x4x4xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} dim 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
  %6 = nn.concat %x, %x dim 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 1 : tensor<2x3x4xf32>, tensor<5xi64> -> tensor<2x5x4xf32>
  %7 = nn.gather %x, %i dim 1 : tensor<2x3x4xf32>, tensor<5xi64> -> tensor<2x5x4xf32>
  // CHECK: nn.gather_elements %{{.*}}, %{{.*}} dim 0 : tensor<5xi64>, tensor<5xi64> -> tensor<5xi64>
  %9 = nn.gather_elements %i, %i dim 0 : tensor<5xi64>, tensor<5xi64> -> tensor<5xi64>
  // CHECK: nn.iota 1 : tensor<2x8xi64>
  %8 = nn.iota 1 : tensor<2x8xi64>
  return
}

// CHECK-LABEL: func.func @reduction
func.func @reduction(%x: tensor<1x4x8x8xf32>) {
  // CHECK: nn.reduce sum %{{.*}} [2, 3] : tensor<1x4x8x8xf32> -> tensor<1x4xf32>
  %0 = nn.reduce sum %x [2, 3] : tensor<1x4x8x8xf32> -> tensor<1x4xf32>
  // CHECK: nn.window_reduce max %{{.*}} window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 1, 1]
  %1 = nn.window_reduce max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 1, 1]
    : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xf32>
  // CHECK: nn.window_arg_max %{{.*}} window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
  %2 = nn.window_arg_max %x window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0]
    : tensor<1x4x8x8xf32> -> tensor<1x4x4x4xi32>
  // CHECK: nn.window_arg_max %{{.*}} max %{{.*}} window [1, 1, 2, 2] {{.*}} : tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32> -> tensor<1x4x4x4xi32>
  %5 = nn.window_arg_max %x max %1 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 1, 1]
    : tensor<1x4x8x8xf32>, tensor<1x4x4x4xf32> -> tensor<1x4x4x4xi32>
  // CHECK: nn.window_spread %{{.*}} at %{{.*}} window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 1, 1] : tensor<1x4x4x4xf32>, tensor<1x4x4x4xi32> -> tensor<1x4x8x8xf32>
  %6 = nn.window_spread %1 at %5 window [1, 1, 2, 2] strides [1, 1, 2, 2] dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 1, 1]
    : tensor<1x4x4x4xf32>, tensor<1x4x4x4xi32> -> tensor<1x4x8x8xf32>
  // CHECK: nn.softmax %{{.*}} dim 3 : tensor<1x4x8x8xf32>
  %3 = nn.softmax %x dim 3 : tensor<1x4x8x8xf32>
  // CHECK: nn.softmax %{{.*}} dim 1 log : tensor<1x4x8x8xf32>
  %4 = nn.softmax %x dim 1 log : tensor<1x4x8x8xf32>
  return
}

// CHECK-LABEL: func.func @contraction
func.func @contraction(%x: tensor<1x3x8x8xf32>, %q: tensor<1x2x8x64xf32>, %bytes: tensor<3x4x16xui8>, %scales: tensor<3x4xf32>, %m: tensor<1x1x1x8xf32>) {
  // CHECK: nn.parameter @w : tensor<4x3x3x3xf32>
  %w = nn.parameter @w : tensor<4x3x3x3xf32>
  // CHECK: nn.parameter state @t : tensor<2xf32>
  %t = nn.parameter state @t : tensor<2xf32>
  // CHECK: %[[A:.*]] = nn.accumulator 0 : tensor<2xf32>
  %acc = nn.accumulator 0 : tensor<2xf32>
  // CHECK: nn.sum_micro_batches %{{.*}} in %[[A]] : tensor<2xf32> : tensor<2xf32>
  %sum = nn.sum_micro_batches %t in %acc : tensor<2xf32> : tensor<2xf32>
  // CHECK: %[[B:.*]] = nn.accumulator 1 lanes 4 : tensor<2xf32>
  %lanes = nn.accumulator 1 lanes 4 : tensor<2xf32>
  // CHECK: nn.sum_micro_batches %{{.*}} in %[[B]] : tensor<2xf32> lane 3 : tensor<2xf32>
  %lane = nn.sum_micro_batches %t in %lanes : tensor<2xf32> lane 3 : tensor<2xf32>
  // CHECK: nn.sum_micro_batches %{{.*}} : tensor<2xf32>
  %alone = nn.sum_micro_batches %t : tensor<2xf32>
  // CHECK: nn.dot %{{.*}}, %{{.*}} batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x8xf32>
  %0 = nn.dot %q, %q batch [0, 1] x [0, 1] contract [3] x [3] : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x8xf32>
  // CHECK: nn.conv %{{.*}}, %{{.*}} channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x4x4xf32>
  %1 = nn.conv %x, %w channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x4x4xf32>
  // CHECK: nn.conv_dx %{{.*}}, %{{.*}} channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x4x4x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>
  %dx = nn.conv_dx %1, %w channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x4x4x4xf32>, tensor<4x3x3x3xf32> -> tensor<1x3x8x8xf32>
  // CHECK: nn.conv_dw %{{.*}}, %{{.*}} channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 1 : tensor<1x3x8x8xf32>, tensor<1x4x4x4xf32> -> tensor<4x3x3x3xf32>
  %dw = nn.conv_dw %x, %1 channels_first strides [2, 2] dilations [1, 1] pads [1, 1] x [1, 1] groups 1
    : tensor<1x3x8x8xf32>, tensor<1x4x4x4xf32> -> tensor<4x3x3x3xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask_add %{{.*}} : tensor<1x1x1x8xf32> scale 1.250000e-01
  %2 = nn.attention %q, %q, %q mask_add %m : tensor<1x1x1x8xf32> scale 0.125
    : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask_mul %{{.*}} : tensor<1x1x1x8xf32> mask_add %{{.*}} : tensor<1x1x1x8xf32> scale 1.000000e+00
  %3 = nn.attention %q, %q, %q mask_mul %m : tensor<1x1x1x8xf32> mask_add %m : tensor<1x1x1x8xf32> scale 1.0
    : tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32>, tensor<1x2x8x64xf32> -> tensor<1x2x8x64xf32>
  // CHECK: nn.packed_dot %{{.*}}, %{{.*}}, %{{.*}} bits 8 : tensor<1x2x8x64xf32>, tensor<3x4x16xui8>, tensor<3x4xf32> -> tensor<1x2x8x3xf32>
  %4 = nn.packed_dot %q, %bytes, %scales bits 8 : tensor<1x2x8x64xf32>, tensor<3x4x16xui8>, tensor<3x4xf32> -> tensor<1x2x8x3xf32>
  // CHECK: nn.packed_dot %{{.*}}, %{{.*}}, %{{.*}} zeros %{{.*}} : tensor<3x4xf32> bits 8 :
  %5 = nn.packed_dot %q, %bytes, %scales zeros %scales : tensor<3x4xf32> bits 8 : tensor<1x2x8x64xf32>, tensor<3x4x16xui8>, tensor<3x4xf32> -> tensor<1x2x8x3xf32>
  return
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<6x64xf32>, %w: tensor<4x8x64xf32>, %e: tensor<6xi64>, %bytes: tensor<4x8x4x16xui8>, %scales: tensor<4x8x4xf32>) {
  // CHECK: nn.expert_dot %{{.*}}, %{{.*}} experts %{{.*}} : tensor<6x64xf32>, tensor<4x8x64xf32>, tensor<6xi64> -> tensor<6x8xf32>
  %0 = nn.expert_dot %x, %w experts %e : tensor<6x64xf32>, tensor<4x8x64xf32>, tensor<6xi64> -> tensor<6x8xf32>
  // CHECK: nn.expert_outer %{{.*}}, %{{.*}} experts %{{.*}} : tensor<6x8xf32>, tensor<6x64xf32>, tensor<6xi64> -> tensor<4x8x64xf32>
  %1 = nn.expert_outer %0, %x experts %e : tensor<6x8xf32>, tensor<6x64xf32>, tensor<6xi64> -> tensor<4x8x64xf32>
  // CHECK: nn.packed_dot %{{.*}}, %{{.*}}, %{{.*}} experts %{{.*}} : tensor<6xi64> bits 8 : tensor<6x64xf32>, tensor<4x8x4x16xui8>, tensor<4x8x4xf32> -> tensor<6x8xf32>
  %2 = nn.packed_dot %x, %bytes, %scales experts %e : tensor<6xi64> bits 8 : tensor<6x64xf32>, tensor<4x8x4x16xui8>, tensor<4x8x4xf32> -> tensor<6x8xf32>
  return
}

// CHECK-LABEL: func.func @recurrent
func.func @recurrent(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>, %l: tensor<2xi32>, %h: tensor<1x2x4xf32>,
    %gx: tensor<7x2x1x6xf32>, %gw: tensor<1x6x2xf32>, %gb: tensor<1x2xf32>,
    %lx: tensor<7x2x1x8xf32>, %lw: tensor<1x8x2xf32>, %c: tensor<1x2x2xf32>, %p: tensor<1x6xf32>) {
  // CHECK: nn.recurrent rnn %{{.*}}, %{{.*}} lengths %{{.*}} : tensor<2xi32> initial %{{.*}} : tensor<1x2x4xf32> reversed [true] functions [#nn.gate<scaled_tanh 1.500000e+00, 5.000000e-01>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  %0 = nn.recurrent rnn %x, %w lengths %l : tensor<2xi32> initial %h : tensor<1x2x4xf32> reversed [true] functions [#nn.gate<scaled_tanh 1.5, 0.5>]
    : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  // CHECK: nn.recurrent gru %{{.*}}, %{{.*}} reset_after %{{.*}} : tensor<1x2xf32> reversed [false] functions [#nn.gate<logistic>, #nn.gate<tanh>] {clip = 2.000000e+00 : f64}
  %1 = nn.recurrent gru %gx, %gw reset_after %gb : tensor<1x2xf32> reversed [false] functions [#nn.gate<logistic>, #nn.gate<tanh>] {clip = 2.0 : f64}
    : tensor<7x2x1x6xf32>, tensor<1x6x2xf32> -> tensor<8x1x2x2xf32>
  // CHECK: nn.recurrent lstm %{{.*}}, %{{.*}} initial_cell %{{.*}} : tensor<1x2x2xf32> peepholes %{{.*}} : tensor<1x6xf32> reversed [false] functions [#nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<tanh>] coupled
  %2 = nn.recurrent lstm %lx, %lw initial_cell %c : tensor<1x2x2xf32> peepholes %p : tensor<1x6xf32> reversed [false]
    functions [#nn.gate<logistic>, #nn.gate<tanh>, #nn.gate<tanh>] coupled
    : tensor<7x2x1x8xf32>, tensor<1x8x2xf32> -> tensor<9x1x2x2xf32>
  return
}

// CHECK-LABEL: func.func @structure
func.func @structure(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: nn.constant dense<5.000000e-01> : tensor<8xf32>
  %c = nn.constant dense<0.5> : tensor<8xf32>
  // CHECK: nn.cluster kernel (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {lowering = #plan.kernel<"k", extent = 1, grain = 1>} {
  // CHECK-NEXT: %[[S:.*]] = nn.add %[[A]], %[[B]] : tensor<8xf32>
  // CHECK-NEXT: nn.yield %[[S]] : tensor<8xf32>
  %r = nn.cluster kernel (%a = %x, %b = %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> attributes {lowering = #plan.kernel<"k", extent = 1, grain = 1>} {
    %s = nn.add %a, %b : tensor<8xf32>
    nn.yield %s : tensor<8xf32>
  }
  // CHECK: nn.cluster kernel () : () -> () {
  nn.cluster kernel () : () -> () {
  }
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @gradients
func.func @gradients(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[V:.*]] = nn.variable %{{.*}} number 3 : tensor<8xf32>
  %v = nn.variable %x number 3 : tensor<8xf32>
  // CHECK: nn.gradient %{{.*}} to %[[V]] : tensor<8xf32>, (tensor<8xf32>) -> tensor<8xf32>
  %g = nn.gradient %x to %v : tensor<8xf32>, (tensor<8xf32>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}

// CHECK-LABEL: func.func @ordered
func.func @ordered(%x: tensor<4x100xf32>, %places: tensor<5xi64>, %rows: tensor<5x100xf32>, %slice: tensor<5x7xf32>) {
  // CHECK: nn.top_k largest %{{.*}} : tensor<4x100xf32> -> tensor<4x5xi64>
  %0 = nn.top_k largest %x : tensor<4x100xf32> -> tensor<4x5xi64>
  // CHECK: nn.top_k %{{.*}} : tensor<4x100xf32> -> tensor<4x100xi64>
  %1 = nn.top_k %x : tensor<4x100xf32> -> tensor<4x100xi64>
  // CHECK: nn.scan sum %{{.*}} dim 1 : tensor<4x100xf32>
  %2 = nn.scan sum %x dim 1 : tensor<4x100xf32>
  // CHECK: nn.scatter %{{.*}} %{{.*}} %{{.*}} : tensor<4x100xf32>, tensor<5xi64>, tensor<5x100xf32>
  %3 = nn.scatter %x %places %rows : tensor<4x100xf32>, tensor<5xi64>, tensor<5x100xf32>
  // CHECK: nn.scatter %{{.*}} %{{.*}} %{{.*}} combine max : tensor<4x100xf32>, tensor<5xi64>, tensor<5x100xf32>
  %4 = nn.scatter %x %places %rows combine max : tensor<4x100xf32>, tensor<5xi64>, tensor<5x100xf32>
  // CHECK: nn.update_slice %{{.*}}, %{{.*}}, %{{.*}} dim 1 : tensor<5x100xf32>, tensor<5x7xf32>, tensor<5xi64>
  %5 = nn.update_slice %rows, %slice, %places dim 1 : tensor<5x100xf32>, tensor<5x7xf32>, tensor<5xi64>
  return
}

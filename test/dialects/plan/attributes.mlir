// RUN: partita-opt %s | partita-opt | FileCheck %s

module attributes {
  // CHECK-DAG: test.kernel = #plan.kernel<"k3", extent = 64, grain = 8, in_place = [0, 0]>
  test.kernel = #plan.kernel<"k3", extent = 64, grain = 8, in_place = [0, 0]>,
  // CHECK-DAG: test.gpu = #plan.kernel<"k5", extent = 0, grain = 1, launch = [128, 256]>
  test.gpu = #plan.kernel<"k5", extent = 0, grain = 1, launch = [128, 256]>,
  // CHECK-DAG: test.plain = #plan.kernel<"k4", extent = 1, grain = 1>
  test.plain = #plan.kernel<"k4", extent = 1, grain = 1>,
  // CHECK-DAG: test.dot = #plan.call<dot, operands = [#plan.view<0 shape [4, 16] strides [16, 1]>, #plan.view<1 shape [16, 8] strides [8, 1] offset 3>, #plan.view<3 shape [4, 8] strides [8, 1]>], post_ops = [#plan.post_op<add, view = #plan.view<2 shape [1, 8] strides [0, 1]>>, #plan.post_op<clip, alpha = -1.000000e+00, beta = 6.000000e+00>]>
  test.dot = #plan.call<dot, operands = [#plan.view<0 shape [4, 16] strides [16, 1]>,
    #plan.view<1 shape [16, 8] strides [8, 1] offset 3>, #plan.view<3 shape [4, 8] strides [8, 1]>],
    post_ops = [#plan.post_op<add, view = #plan.view<2 shape [1, 8] strides [0, 1]>>,
                #plan.post_op<clip, beta = 6.0, alpha = -1.0>]>,
  // CHECK-DAG: test.pool = #plan.call<pool_avg, operands = [#plan.view<0 shape [] strides []>], details = #plan.pool<strides = [2, 2], dilations = [1, 1], pads_low = [0, 1], pads_high = [1, 0], window = [3, 3], include_pad = true>>
  test.pool = #plan.call<pool_avg, operands = [#plan.view<0 shape [] strides []>],
    details = #plan.pool<window = [3, 3], strides = [2, 2], dilations = [1, 1], pads_low = [0, 1], pads_high = [1, 0], include_pad = true>>,
  // CHECK-DAG: test.conv = #plan.call<conv, details = #plan.conv<strides = [1], groups = 2, winograd = true, bias = #plan.view<2 shape [4] strides [1]>>>
  test.conv = #plan.call<conv, details = #plan.conv<strides = [1], groups = 2, winograd = true, bias = #plan.view<2 shape [4] strides [1]>>>,
  // CHECK-DAG: test.scale = #plan.call<attention, details = #plan.attention<mask_add = #plan.view<3 shape [1] strides [1]>, scale = 1.250000e-01>>
  test.scale = #plan.call<attention, details = #plan.attention<mask_add = #plan.view<3 shape [1] strides [1]>, scale = 0.125>>,
  // CHECK-DAG: test.plain_attention = #plan.call<attention, details = #plan.attention>
  test.plain_attention = #plan.call<attention, details = #plan.attention>,
  // CHECK-DAG: test.layer = #plan.call<recurrent, details = #plan.recurrent<lstm, reversed = [0, 1], coupled = true, clip = 2.000000e+00, functions = [#plan.gate<logistic>, #plan.gate<scaled_tanh, alpha = 1.500000e+00, beta = 5.000000e-01>], lengths = #plan.view<2 shape [3] strides [1]>, initial = #plan.view<3 shape [1] strides [1]>, initial_cell = #plan.view<4 shape [1] strides [1]>, peepholes = #plan.view<5 shape [1] strides [1]>, hidden_bias = #plan.view<6 shape [1] strides [1]>>>
  test.layer = #plan.call<recurrent, details = #plan.recurrent<lstm, reversed = [0, 1], coupled = true, clip = 2.0,
    functions = [#plan.gate<logistic>, #plan.gate<scaled_tanh, alpha = 1.5, beta = 0.5>],
    lengths = #plan.view<2 shape [3] strides [1]>, initial = #plan.view<3 shape [1] strides [1]>,
    initial_cell = #plan.view<4 shape [1] strides [1]>, peepholes = #plan.view<5 shape [1] strides [1]>,
    hidden_bias = #plan.view<6 shape [1] strides [1]>>>,
  // CHECK-DAG: test.top_k = #plan.call<top_k, operands = [#plan.view<0 shape [4, 9] strides [9, 1]>, #plan.view<1 shape [4, 2] strides [2, 1]>], details = #plan.top_k<largest = true>>
  test.top_k = #plan.call<top_k, operands = [#plan.view<0 shape [4, 9] strides [9, 1]>, #plan.view<1 shape [4, 2] strides [2, 1]>], details = #plan.top_k<largest = true>>,
  // CHECK-DAG: test.scan = #plan.call<scan, operands = [#plan.view<0 shape [] strides []>], details = #plan.combine<prod>>
  test.scan = #plan.call<scan, operands = [#plan.view<0 shape [] strides []>], details = #plan.combine<prod>>,
  // CHECK-DAG: test.packed = #plan.call<packed_dot, details = #plan.packed_dot<bits = 2, zeros = #plan.view<3 shape [8, 2] strides [2, 1]>>>
  test.packed = #plan.call<packed_dot, details = #plan.packed_dot<bits = 2, zeros = #plan.view<3 shape [8, 2] strides [2, 1]>>>,
  // CHECK-DAG: test.packed_bytes = #plan.call<packed_dot, details = #plan.packed_dot>
  test.packed_bytes = #plan.call<packed_dot, details = #plan.packed_dot<bits = 8>>,
  // CHECK-DAG: test.packed_experts = #plan.call<packed_dot, details = #plan.packed_dot<bits = 4, experts = #plan.view<3 shape [6] strides [1]>>>
  test.packed_experts = #plan.call<packed_dot, details = #plan.packed_dot<bits = 4, experts = #plan.view<3 shape [6] strides [1]>>>,
  // A number that has no short decimal form comes back bit for bit.
  // CHECK-DAG: test.exact = #plan.post_op<linear, alpha = 0x7FF0000000000000, beta = 1.000000e-01>
  test.exact = #plan.post_op<linear, alpha = 0x7FF0000000000000, beta = 0.1>
} {}

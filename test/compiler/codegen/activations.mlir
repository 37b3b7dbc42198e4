// Activations of several ops, in orders that exporters write, are post-ops; what
// is nearly one is not.
// RUN: partita-opt --split-input-file --lower-clusters --verify-diagnostics %s | FileCheck %s

// 0.5 x (1 + erf(x / sqrt(2)))
func.func @gelu_erf(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @gelu_erf(
  // CHECK: post_ops = [#plan.post_op<gelu_erf>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %root = nn.constant dense<1.41421354> : tensor<4x8xf32>
    %i = nn.div %d, %root : tensor<4x8xf32>
    %e = nn.erf %i : tensor<4x8xf32>
    %s = nn.add %e, %one : tensor<4x8xf32>
    %m = nn.mul %d, %s : tensor<4x8xf32>
    %r = nn.mul %m, %h : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// the same, as a product of 0.5 x and 1 + erf
func.func @gelu_erf_of_halves(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @gelu_erf_of_halves(
  // CHECK: post_ops = [#plan.post_op<gelu_erf>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %root = nn.constant dense<0.707106769> : tensor<4x8xf32>
    %i = nn.mul %root, %d : tensor<4x8xf32>
    %e = nn.erf %i : tensor<4x8xf32>
    %s = nn.add %one, %e : tensor<4x8xf32>
    %m = nn.mul %h, %d : tensor<4x8xf32>
    %r = nn.mul %s, %m : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// 0.5 x (1 + tanh(0.79788456 (x + 0.044715 x^3)))
func.func @gelu_tanh(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @gelu_tanh(
  // CHECK: post_ops = [#plan.post_op<gelu_tanh>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %three = nn.constant dense<3.0> : tensor<4x8xf32>
    %k = nn.constant dense<0.044715> : tensor<4x8xf32>
    %c = nn.constant dense<0.797884583> : tensor<4x8xf32>
    %p = nn.pow %d, %three : tensor<4x8xf32>
    %q = nn.mul %p, %k : tensor<4x8xf32>
    %a = nn.add %d, %q : tensor<4x8xf32>
    %i = nn.mul %a, %c : tensor<4x8xf32>
    %t = nn.tanh %i : tensor<4x8xf32>
    %s = nn.add %t, %one : tensor<4x8xf32>
    %m = nn.mul %d, %s : tensor<4x8xf32>
    %r = nn.mul %m, %h : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// the same with x (0.79788456 + 0.03567741 x^2)
func.func @gelu_tanh_by_horner(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @gelu_tanh_by_horner(
  // CHECK: post_ops = [#plan.post_op<gelu_tanh>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %k = nn.constant dense<0.0356774069> : tensor<4x8xf32>
    %c = nn.constant dense<0.797884583> : tensor<4x8xf32>
    %p = nn.mul %d, %d : tensor<4x8xf32>
    %q = nn.mul %p, %k : tensor<4x8xf32>
    %a = nn.add %q, %c : tensor<4x8xf32>
    %i = nn.mul %a, %d : tensor<4x8xf32>
    %t = nn.tanh %i : tensor<4x8xf32>
    %s = nn.add %t, %one : tensor<4x8xf32>
    %m = nn.mul %h, %s : tensor<4x8xf32>
    %r = nn.mul %m, %d : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// x logistic(x)
func.func @swish(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @swish(
  // CHECK: post_ops = [#plan.post_op<swish, alpha = 1.000000e+00>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %l = nn.logistic %d : tensor<4x8xf32>
    %r = nn.mul %d, %l : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// x / (1 + exp(-x))
func.func @swish_by_exp(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @swish_by_exp(
  // CHECK: post_ops = [#plan.post_op<swish, alpha = 1.000000e+00>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %n = nn.neg %d : tensor<4x8xf32>
    %e = nn.exp %n : tensor<4x8xf32>
    %s = nn.add %e, %one : tensor<4x8xf32>
    %r = nn.div %d, %s : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// x clip(x + 3, 0, 6) / 6
func.func @hardswish(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @hardswish(
  // CHECK: post_ops = [#plan.post_op<hardswish>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %z = nn.constant dense<0.0> : tensor<4x8xf32>
    %three = nn.constant dense<3.0> : tensor<4x8xf32>
    %six = nn.constant dense<6.0> : tensor<4x8xf32>
    %a = nn.add %d, %three : tensor<4x8xf32>
    %l = nn.max %a, %z : tensor<4x8xf32>
    %u = nn.min %l, %six : tensor<4x8xf32>
    %m = nn.mul %d, %u : tensor<4x8xf32>
    %r = nn.div %m, %six : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// x clip(x / 6 + 0.5, 0, 1)
func.func @hardswish_by_sixths(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @hardswish_by_sixths(
  // CHECK: post_ops = [#plan.post_op<hardswish>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %z = nn.constant dense<0.0> : tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %k = nn.constant dense<0.166666672> : tensor<4x8xf32>
    %a = nn.mul %d, %k : tensor<4x8xf32>
    %b = nn.add %a, %h : tensor<4x8xf32>
    %l = nn.min %b, %one : tensor<4x8xf32>
    %u = nn.max %l, %z : tensor<4x8xf32>
    %r = nn.mul %u, %d : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// max(x, 0.125 x)
func.func @leaky_relu(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @leaky_relu(
  // CHECK: post_ops = [#plan.post_op<leaky_relu, alpha = 1.250000e-01>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %k = nn.constant dense<0.125> : tensor<4x8xf32>
    %a = nn.mul %d, %k : tensor<4x8xf32>
    %r = nn.max %d, %a : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// x x
func.func @square(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // CHECK-LABEL: @square(
  // CHECK: post_ops = [#plan.post_op<square>]
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %r = nn.mul %d, %d : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

// 0.5 x (2 + erf(x / sqrt(2))) is another function
func.func @gelu_without_one(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{is to be a library call, but the library does not compute it}}
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %one = nn.constant dense<2.0> : tensor<4x8xf32>
    %root = nn.constant dense<1.41421354> : tensor<4x8xf32>
    %i = nn.div %d, %root : tensor<4x8xf32>
    %e = nn.erf %i : tensor<4x8xf32>
    %s = nn.add %e, %one : tensor<4x8xf32>
    %m = nn.mul %d, %s : tensor<4x8xf32>
    %r = nn.mul %m, %h : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

// erf of 0.70710 x is none, either
func.func @gelu_of_another_scale(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{is to be a library call, but the library does not compute it}}
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %h = nn.constant dense<0.5> : tensor<4x8xf32>
    %one = nn.constant dense<1.0> : tensor<4x8xf32>
    %root = nn.constant dense<0.7071> : tensor<4x8xf32>
    %i = nn.mul %d, %root : tensor<4x8xf32>
    %e = nn.erf %i : tensor<4x8xf32>
    %s = nn.add %e, %one : tensor<4x8xf32>
    %m = nn.mul %d, %s : tensor<4x8xf32>
    %r = nn.mul %m, %h : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

// x clip(x + 3, 0, 5) / 6
func.func @hardswish_of_five(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  // expected-error@+1 {{is to be a library call, but the library does not compute it}}
  %0 = nn.cluster call (%a0 = %x, %a1 = %w) : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> {
    %d = nn.dot %a0, %a1 batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %z = nn.constant dense<0.0> : tensor<4x8xf32>
    %three = nn.constant dense<3.0> : tensor<4x8xf32>
    %six = nn.constant dense<6.0> : tensor<4x8xf32>
    %five = nn.constant dense<5.0> : tensor<4x8xf32>
    %a = nn.add %d, %three : tensor<4x8xf32>
    %l = nn.max %a, %z : tensor<4x8xf32>
    %u = nn.min %l, %five : tensor<4x8xf32>
    %m = nn.mul %d, %u : tensor<4x8xf32>
    %r = nn.div %m, %six : tensor<4x8xf32>
    nn.yield %r : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

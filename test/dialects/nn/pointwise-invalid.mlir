// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @types(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) {
  // expected-error@+1 {{requires the same type for all operands and results}}
  %0 = "nn.mul"(%x, %y) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @compare(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.compare lt %x, %x : tensor<2x3xf32> -> tensor<3x2xi1>
  return
}

// -----

func.func @select(%p: tensor<3x2xi1>, %x: tensor<2x3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.select %p, %x, %x : tensor<3x2xi1>, tensor<2x3xf32>
  return
}

// -----

func.func @cast(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.cast %x : tensor<2x3xf32> -> tensor<3x2xf64>
  return
}

// -----

func.func @bitcast(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{requires the same shape for all operands and results}}
  %0 = nn.bitcast %x : tensor<2x3xf32> -> tensor<3x2xi32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @gradient_c1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{needs the results of different nn.variable ops}}
  %g = nn.gradient %x to %x : tensor<4xf32>, (tensor<4xf32>) -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----

// gradient C1: the same one twice
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %v = nn.variable %x number 0 : tensor<4xf32>
  // expected-error@+1 {{needs the results of different nn.variable ops}}
  %g:2 = nn.gradient %v to %v, %v : tensor<4xf32>, (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %g#0 : tensor<4xf32>
}

// -----

func.func @gradient_c2(%x: tensor<4xf32>) -> tensor<4xf64> {
  %v = nn.variable %x number 0 : tensor<4xf32>
  // expected-error@+1 {{has results of other types than its variables}}
  %g = nn.gradient %v to %v : tensor<4xf32>, (tensor<4xf32>) -> tensor<4xf64>
  return %g : tensor<4xf64>
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @parameter_c1() {
  // expected-error@+1 {{names the weight @w, which the module does not have}}
  %0 = nn.parameter @w : tensor<2xf32>
  return
}

// -----

nn.weight @w "w" : tensor<2xf32> = dense<0.0> : tensor<2xf32>
func.func @parameter_c1_type() {
  // expected-error@+1 {{is 'tensor<3xf32>', but the weight @w is 'tensor<2xf32>'}}
  %0 = nn.parameter @w : tensor<3xf32>
  return
}

// -----

nn.weight state @w "w" : tensor<2xf32> = dense<0.0> : tensor<2xf32>
func.func @parameter_c2() {
  // expected-error@+1 {{and the weight @w must agree on whether it is a state}}
  %0 = nn.parameter @w : tensor<2xf32>
  return
}

// -----

func.func @sum_micro_batches_c1(%x: tensor<2xf32>, %a: tensor<3xf32>) {
  // expected-error@+1 {{sums up 'tensor<2xf32>' in an accumulator 'tensor<3xf32>'}}
  %0 = nn.sum_micro_batches %x in %a : tensor<3xf32> : tensor<2xf32>
  return
}

// -----

func.func @accumulator_c1() {
  // expected-error@+1 {{has 0 lanes}}
  %0 = nn.accumulator 0 lanes 0 : tensor<2xf32>
  return
}

// -----

func.func @sum_micro_batches_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{has a lane of no accumulator}}
  %0 = nn.sum_micro_batches %x lane 0 : tensor<2xf32>
  return
}

// -----

func.func @sum_micro_batches_c2(%x: tensor<2xf32>) {
  %a = nn.accumulator 0 lanes 2 : tensor<2xf32>
  // expected-error@+1 {{is lane 2 of an accumulator of 2}}
  %0 = nn.sum_micro_batches %x in %a : tensor<2xf32> lane 2 : tensor<2xf32>
  return
}

// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @recurrent_c1(%x: tensor<7x2x1x4xf32>, %w: tensor<1x5x4xf32>) {
  // expected-error@+1 {{needs x [T, B, D, 1 * H] of at least one step and weights [D, 1 * H, H] of the result's element type}}
  %0 = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x5x4xf32> -> tensor<8x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c1_no_steps(%x: tensor<0x2x1x4xf32>, %w: tensor<1x4x4xf32>) {
  // expected-error@+1 {{of at least one step}}
  %0 = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] : tensor<0x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<1x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c2(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>) {
  // expected-error@+1 {{result has shape [7, 1, 2, 4] instead of [8, 1, 2, 4]}}
  %0 = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<7x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c3(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>, %h: tensor<1x4x2xf32>) {
  // expected-error@+1 {{needs 'initial' of shape [1, 2, 4] and x's element type, not 'tensor<1x4x2xf32>'}}
  %0 = nn.recurrent rnn %x, %w initial %h : tensor<1x4x2xf32> reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c4(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>, %b: tensor<1x4xf32>) {
  // expected-error@+1 {{has a hidden bias, which only a gru has}}
  %0 = nn.recurrent rnn %x, %w reset_after %b : tensor<1x4xf32> reversed [false] functions [#nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c4_coupled(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>) {
  // expected-error@+1 {{has an operand or attribute that only an lstm has}}
  %0 = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] coupled : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c5(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>) {
  // expected-error@+1 {{needs 1 entries of 'reversed' and 1 of 'functions', but has 1 and 2}}
  %0 = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>, #nn.gate<tanh>] : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  return
}

// -----

func.func @recurrent_c5_clip(%x: tensor<7x2x1x4xf32>, %w: tensor<1x4x4xf32>) {
  // expected-error@+1 {{cannot clip to a negative bound}}
  %0 = nn.recurrent rnn %x, %w reversed [false] functions [#nn.gate<tanh>] {clip = -1.0 : f64} : tensor<7x2x1x4xf32>, tensor<1x4x4xf32> -> tensor<8x1x2x4xf32>
  return
}

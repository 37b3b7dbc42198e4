// RUN: partita-opt %s -split-input-file -verify-diagnostics

// weight C1
// expected-error@+1 {{needs either a file or a value}}
nn.weight @w "w" : tensor<2xf32>

// -----

// weight C1: both
// expected-error@+1 {{needs either a file or a value}}
nn.weight @w "w" : tensor<2xf32> in "m.onnx" at 0 bytes 8 = dense<0.0> : tensor<2xf32>

// -----

// weight C2
// expected-error@+1 {{of type 'tensor<2xf32>' needs 8 bytes at an offset of at least 0, not 9 at 0}}
nn.weight @w "w" : tensor<2xf32> in "m.onnx" at 0 bytes 9

// -----

// weight C2: offset
// expected-error@+1 {{of type 'tensor<2xf32>' needs 8 bytes at an offset of at least 0, not 8 at -1}}
nn.weight @w "w" : tensor<2xf32> in "m.onnx" at -1 bytes 8

// -----

// weight C3
// expected-error@+1 {{has a value of type 'tensor<3xf32>' but is 'tensor<2xf32>'}}
nn.weight @w "w" : tensor<2xf32> = dense<0.0> : tensor<3xf32>

// -----

// weight C4
// expected-error@+1 {{of type 'tensor<4x2xf32>' has a part 'tensor<2xf32>'}}
nn.weight state @w "w" : tensor<4x2xf32> part tensor<2xf32> = dense<0.0> : tensor<4x2xf32>

// -----

// Of what no step writes, devices have no parts.
// expected-error@+1 {{of type 'tensor<4xf32>' has a part 'tensor<2xf32>'}}
nn.weight @w "w" : tensor<4xf32> part tensor<2xf32> = dense<0.0> : tensor<4xf32>

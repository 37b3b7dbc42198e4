// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @attention_c1(%q: tensor<1x2x8x16xf32>, %k: tensor<1x1x4x16xf32>, %v: tensor<1x2x4x16xf32>) {
  // expected-error@+1 {{needs tensors of rank 4 that agree in element type, batch and heads}}
  %0 = nn.attention %q, %k, %v  scale 1.0 : tensor<1x2x8x16xf32>, tensor<1x1x4x16xf32>, tensor<1x2x4x16xf32> -> tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x4x16xf32>, %v: tensor<1x2x5x16xf32>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.attention %q, %k, %v  scale 1.0 : tensor<1x2x8x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x5x16xf32> -> tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_c3(%q: tensor<1x2x8x16xf32>, %k: tensor<1x2x4x16xf32>, %v: tensor<1x2x4x16xf32>, %m: tensor<1x1x1x8xf32>) {
  // expected-error@+1 {{cannot repeat a mask 'tensor<1x1x1x8xf32>' to [1, 2, 8, 4]}}
  %0 = nn.attention %q, %k, %v mask_add %m : tensor<1x1x1x8xf32> scale 1.0 : tensor<1x2x8x16xf32>, tensor<1x2x4x16xf32>, tensor<1x2x4x16xf32> -> tensor<1x2x8x16xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<1x2x8x0xf32>, %k: tensor<1x2x4x0xf32>, %v: tensor<1x2x4x16xf32>) {
  // expected-error@+1 {{compares vectors without elements: 'tensor<1x2x8x0xf32>'}}
  %0 = nn.attention %q, %k, %v scale 1.0 : tensor<1x2x8x0xf32>, tensor<1x2x4x0xf32>, tensor<1x2x4x16xf32> -> tensor<1x2x8x16xf32>
  return
}

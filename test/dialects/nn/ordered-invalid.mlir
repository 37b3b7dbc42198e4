// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @top_k_c1(%x: tensor<4x10xf32>) {
  // expected-error@+1 {{cannot choose 'tensor<4x11xi64>' from 'tensor<4x10xf32>'}}
  %0 = nn.top_k %x : tensor<4x10xf32> -> tensor<4x11xi64>
  return
}

// -----

func.func @scan_c1(%x: tensor<4x10xf32>) {
  // expected-error@+1 {{names dimension 2 of a tensor with 2 dimensions}}
  %0 = nn.scan sum %x dim 2 : tensor<4x10xf32>
  return
}

// -----

func.func @scatter_c1(%x: tensor<4x10xf32>, %p: tensor<2xi64>, %u: tensor<2x9xf32>) {
  // expected-error@+1 {{cannot write rows of 'tensor<2x9xf32>' to 'tensor<4x10xf32>'}}
  %0 = nn.scatter %x %p %u : tensor<4x10xf32>, tensor<2xi64>, tensor<2x9xf32>
  return
}

// -----

func.func @scatter_c2(%x: tensor<4x10xf32>, %p: tensor<3xi64>, %u: tensor<2x10xf32>) {
  // expected-error@+1 {{has 'tensor<3xi64>' for the rows of 'tensor<2x10xf32>'}}
  %0 = nn.scatter %x %p %u : tensor<4x10xf32>, tensor<3xi64>, tensor<2x10xf32>
  return
}

// -----

func.func @update_slice_c1(%x: tensor<2x10xf32>, %u: tensor<1x10xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{cannot write along dimension 0 of 'tensor<2x10xf32>'}}
  %0 = nn.update_slice %x, %u, %s dim 0 : tensor<2x10xf32>, tensor<1x10xf32>, tensor<2xi64>
  return
}

// -----

func.func @update_slice_c2(%x: tensor<2x10xf32>, %u: tensor<2x11xf32>, %s: tensor<2xi64>) {
  // expected-error@+1 {{cannot write 'tensor<2x11xf32>' into 'tensor<2x10xf32>' along dimension 1}}
  %0 = nn.update_slice %x, %u, %s dim 1 : tensor<2x10xf32>, tensor<2x11xf32>, tensor<2xi64>
  return
}

// -----

func.func @update_slice_c2_type(%x: tensor<2x10xf32>, %u: tensor<2x3xf16>, %s: tensor<2xi64>) {
  // expected-error@+1 {{cannot write 'tensor<2x3xf16>' into 'tensor<2x10xf32>' along dimension 1}}
  %0 = nn.update_slice %x, %u, %s dim 1 : tensor<2x10xf32>, tensor<2x3xf16>, tensor<2xi64>
  return
}

// -----

func.func @update_slice_c3(%x: tensor<2x10xf32>, %u: tensor<2x3xf32>, %s: tensor<3xi64>) {
  // expected-error@+1 {{has places 'tensor<3xi64>' for the samples of 'tensor<2x10xf32>'}}
  %0 = nn.update_slice %x, %u, %s dim 1 : tensor<2x10xf32>, tensor<2x3xf32>, tensor<3xi64>
  return
}

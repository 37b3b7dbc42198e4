// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @packed_dot_c1(%x: tensor<2x64xf32>, %w: tensor<8x2x16xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{has weights of 3 bits, not of 2, 4 or 8}}
  %0 = nn.packed_dot %x, %w, %s bits 3 : tensor<2x64xf32>, tensor<8x2x16xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @packed_dot_c1_bytes(%x: tensor<2x48xf32>, %w: tensor<8x2x12xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{has blocks of 12 bytes}}
  %0 = nn.packed_dot %x, %w, %s bits 4 : tensor<2x48xf32>, tensor<8x2x12xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @packed_dot_c2(%x: tensor<2x64xf16>, %w: tensor<8x2x16xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{needs one type of floats}}
  %0 = nn.packed_dot %x, %w, %s bits 4 : tensor<2x64xf16>, tensor<8x2x16xui8>, tensor<8x2xf32> -> tensor<2x8xf16>
  return
}

// -----

func.func @packed_dot_c3(%x: tensor<2x32xf32>, %w: tensor<8x2x16xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.packed_dot %x, %w, %s bits 4 : tensor<2x32xf32>, tensor<8x2x16xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @packed_dot_c3_zeros(%x: tensor<2x64xf32>, %w: tensor<8x2x16xui8>, %s: tensor<8x2xf32>, %z: tensor<8x1xf32>) {
  // expected-error@+1 {{has zeros of another type than scales}}
  %0 = nn.packed_dot %x, %w, %s zeros %z : tensor<8x1xf32> bits 4 : tensor<2x64xf32>, tensor<8x2x16xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @packed_dot_rank(%x: tensor<2x64xf32>, %w: tensor<8x32xui8>, %s: tensor<8x2xf32>) {
  // expected-error@+1 {{needs weights of rank 3}}
  %0 = nn.packed_dot %x, %w, %s bits 4 : tensor<2x64xf32>, tensor<8x32xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

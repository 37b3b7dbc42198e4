// RUN: partita-opt %s -split-input-file -verify-diagnostics

func.func @expert_dot_c1(%x: tensor<6x64xf32>, %w: tensor<4x8x64xf16>, %e: tensor<6xi64>) {
  // expected-error@+1 {{needs one type of floats}}
  %0 = nn.expert_dot %x, %w experts %e : tensor<6x64xf32>, tensor<4x8x64xf16>, tensor<6xi64> -> tensor<6x8xf32>
  return
}

// -----

func.func @expert_dot_c2(%x: tensor<6x64xf32>, %w: tensor<4x8x32xf32>, %e: tensor<6xi64>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.expert_dot %x, %w experts %e : tensor<6x64xf32>, tensor<4x8x32xf32>, tensor<6xi64> -> tensor<6x8xf32>
  return
}

// -----

func.func @expert_dot_c2_experts(%x: tensor<6x64xf32>, %w: tensor<4x8x64xf32>, %e: tensor<5xi64>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.expert_dot %x, %w experts %e : tensor<6x64xf32>, tensor<4x8x64xf32>, tensor<5xi64> -> tensor<6x8xf32>
  return
}

// -----

func.func @expert_dot_c2_none(%x: tensor<6x64xf32>, %w: tensor<0x8x64xf32>, %e: tensor<6xi64>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.expert_dot %x, %w experts %e : tensor<6x64xf32>, tensor<0x8x64xf32>, tensor<6xi64> -> tensor<6x8xf32>
  return
}

// -----

func.func @expert_dot_rank(%x: tensor<6x64xf32>, %w: tensor<8x64xf32>, %e: tensor<6xi64>) {
  // expected-error@+1 {{needs weights of rank 3}}
  %0 = nn.expert_dot %x, %w experts %e : tensor<6x64xf32>, tensor<8x64xf32>, tensor<6xi64> -> tensor<6x8xf32>
  return
}

// -----

func.func @expert_outer_c1(%dy: tensor<6x8xf32>, %x: tensor<6x64xf32>, %e: tensor<6xi64>) {
  // expected-error@+1 {{needs one type of floats}}
  %0 = nn.expert_outer %dy, %x experts %e : tensor<6x8xf32>, tensor<6x64xf32>, tensor<6xi64> -> tensor<4x8x64xf64>
  return
}

// -----

func.func @expert_outer_c2(%dy: tensor<6x8xf32>, %x: tensor<6x64xf32>, %e: tensor<6xi64>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.expert_outer %dy, %x experts %e : tensor<6x8xf32>, tensor<6x64xf32>, tensor<6xi64> -> tensor<4x64x8xf32>
  return
}

// -----

func.func @packed_dot_experts_rank(%x: tensor<2x64xf32>, %w: tensor<8x2x16xui8>, %s: tensor<8x2xf32>, %e: tensor<2xi64>) {
  // expected-error@+1 {{needs weights of rank 4}}
  %0 = nn.packed_dot %x, %w, %s experts %e : tensor<2xi64> bits 4 : tensor<2x64xf32>, tensor<8x2x16xui8>, tensor<8x2xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @packed_dot_c3_experts(%x: tensor<2x64xf32>, %w: tensor<3x8x2x16xui8>, %s: tensor<3x8x2xf32>, %e: tensor<3xi64>) {
  // expected-error@+1 {{has sizes that do not fit}}
  %0 = nn.packed_dot %x, %w, %s experts %e : tensor<3xi64> bits 4 : tensor<2x64xf32>, tensor<3x8x2x16xui8>, tensor<3x8x2xf32> -> tensor<2x8xf32>
  return
}

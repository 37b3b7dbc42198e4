// RUN: partita-opt %s -split-input-file --dist-choose-schedule -verify-diagnostics | FileCheck %s

// The standard schedule, and two micro-batches for each stage that has work.
// CHECK-LABEL: @standard
// CHECK-SAME: dist.micro_batches = 4 : i64, dist.schedule = "fill_drain"
func.func @standard(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0, 1, 2>} {
  %0 = nn.exp %x {dist.stage = 0 : i64} : tensor<8xf32>
  %1 = nn.exp %0 {dist.stage = 1 : i64} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Two for each device.
// CHECK-LABEL: @looped
// CHECK-SAME: dist.micro_batches = 4 : i64, dist.schedule = "looped"
func.func @looped(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0, 1, 0>, dist.schedule = "looped"} {
  %0 = nn.exp %x {dist.stage = 0 : i64} : tensor<8xf32>
  %1 = nn.exp %0 {dist.stage = 1 : i64} : tensor<8xf32>
  %2 = nn.exp %1 {dist.stage = 2 : i64} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Nothing overlaps: one.
// CHECK-LABEL: @sequential
// CHECK-SAME: dist.micro_batches = 1 : i64, dist.schedule = "sequential"
func.func @sequential(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0, 1>, dist.schedule = "sequential"} {
  %0 = nn.exp %x {dist.stage = 0 : i64} : tensor<8xf32>
  %1 = nn.exp %0 {dist.stage = 1 : i64} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// What a person said stays.
// CHECK-LABEL: @said
// CHECK-SAME: dist.micro_batches = 7 : i64
func.func @said(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0>, dist.micro_batches = 7 : i64} {
  %0 = nn.exp %x {dist.stage = 0 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @+1 {{unknown schedule 'fill-drain' (fill_drain, sequential, looped, gpipe, 1f1b, interleaved, zb_h1, zb_v); did you mean 'fill_drain'?}}
func.func @unknown(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.schedule = "fill-drain"} {
  return %x : tensor<8xf32>
}

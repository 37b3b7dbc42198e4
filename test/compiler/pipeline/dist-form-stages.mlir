// RUN: partita-opt %s -split-input-file --dist-form-stages -verify-diagnostics | FileCheck %s

// A skip connection goes straight from F0 to F2; what two stages of a device
// read is sent there once; weights are repeated.
// CHECK: dist.mesh @d0 [0]
// CHECK: dist.mesh @d1 [1]
nn.weight @w "w" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: -> !dist.placed<tensor<8xf32>, @d1>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32>
    attributes {dist.devices = array<i64: 0, 1, 1>, dist.stage_blocks = [["A"], ["B"], ["C"]]} {
  %w = nn.parameter @w : tensor<8xf32>
  %k = nn.exp %w : tensor<8xf32>
  // CHECK: %[[F0:.*]] = dist.stage "F0" 0 on @d0 blocks ["A"](%arg0)
  // CHECK:   nn.parameter
  // CHECK:   nn.exp
  // CHECK:   nn.add
  %0 = nn.add %x, %k {dist.stage = 0 : i64} : tensor<8xf32>
  // CHECK: %[[T:.*]] = dist.transfer %[[F0]] reason "F0 on d0 makes it, F1 on d1 reads it"
  // CHECK-NOT: dist.transfer
  // CHECK: %[[F1:.*]] = dist.stage "F1" 1 on @d1 blocks ["B"](%[[T]])
  // CHECK:   nn.tanh
  %1 = nn.tanh %0 {dist.stage = 1 : i64} : tensor<8xf32>
  // CHECK: dist.stage "F2" 2 on @d1 blocks ["C"](%[[F1]], %[[T]], %arg1)
  // CHECK:   nn.parameter
  // CHECK:   nn.exp
  %2 = nn.add %1, %0 {dist.stage = 2 : i64} : tensor<8xf32>
  %3 = nn.add %2, %y {dist.stage = 2 : i64} : tensor<8xf32>
  %4 = nn.add %3, %k {dist.stage = 2 : i64} : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// An input that is an output as it stands.
// CHECK-LABEL: func.func @identity
func.func @identity(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0>} {
  // CHECK: dist.stage "F0" 0 on @d0
  // CHECK: dist.yield %{{.*}} : tensor<8xf32>
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{has no stages: run --dist-assign-stages before}}
func.func @unassigned(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Another plan has the state on the second device, which hands it on.
nn.weight state @w "w" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
// CHECK-LABEL: func.func @evaluates
func.func @evaluates(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.devices = array<i64: 0, 1>, dist.state_stages = {w = 1 : i64}} {
  %w = nn.parameter state @w : tensor<8xf32>
  // CHECK: %[[P1:.*]] = dist.stage "P1" 1 phase prologue on @d1
  // CHECK: nn.parameter state @w
  // CHECK: %[[T:.*]] = dist.transfer %[[P1]] reason "P1 on d1 makes it, F0 on d0 reads it"
  // CHECK: dist.stage "F0" 0 on @d0 blocks [](%arg0, %[[T]])
  %0 = nn.mul %x, %w {dist.stage = 0 : i64} : tensor<8xf32>
  // CHECK: dist.stage "F1" 1 on @d1
  // CHECK: nn.parameter state @w
  %1 = nn.add %0, %w {dist.stage = 1 : i64} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

nn.weight state @a "a" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
nn.weight state @b "b" : tensor<8xf32> = dense<1.0> : tensor<8xf32>
func.func @reads_what_is_written(%x: tensor<8xf32>) -> (tensor<8xf32> {nn.state = @a}, tensor<8xf32> {nn.state = @b}) attributes {dist.devices = array<i64: 0, 1>} {
  %a = nn.parameter state @a : tensor<8xf32>
  %0 = nn.mul %x, %a {dist.stage = 0 : i64} : tensor<8xf32>
  %1 = nn.exp %0 {dist.stage = 1 : i64} : tensor<8xf32>
  %2 = nn.sum_micro_batches %0 {dist.stage = 0 : i64} : tensor<8xf32>
  %3 = nn.sum_micro_batches %1 {dist.stage = 1 : i64} : tensor<8xf32>
  %4 = nn.sub %a, %2 {dist.stage = 0 : i64} : tensor<8xf32>
  // expected-error @+1 {{'nn.sub' updates something on device 1 and reads 'a', which is updated on device 0: put the nodes that read it on one device, or freeze it (--freeze)}}
  %5 = nn.sub %a, %3 {dist.stage = 1 : i64} : tensor<8xf32>
  return %4, %5 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Where replicas share parameters, the forward of a stage gathers one for itself, and its backward does so again. Another stage that reads it has its part.
nn.weight state @w "w" : tensor<8x8xf32> part tensor<4x8xf32> = dense<1.0> : tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-LABEL: func.func @gathers
func.func @gathers(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32> {nn.state = @w})
    attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 2>], dist.devices = array<i64: 0, 1>, dist.schedule = "1f1b", dist.zero = 3 : i64} {
  %w = nn.parameter state @w : tensor<4x8xf32>
  // CHECK: %[[P:.*]] = dist.stage "P0" 0 phase prologue on @d0
  // CHECK: dist.stage "F0" 0 on @d0
  // CHECK: %[[G:.*]] = dist.all_gather %{{.*}} dim 0
  // CHECK: nn.mul %{{.*}}, %[[G]]
  // CHECK: dist.transfer %[[P]] reason {{.*}} <tensor<4x8xf32>, @d0>
  // CHECK: dist.stage "F1" 1 on @d1
  // CHECK: %[[G:.*]] = dist.all_gather %{{.*}} dim 0
  // CHECK: nn.add %{{.*}}, %[[G]]
  // CHECK: dist.stage "B0" 0 phase backward on @d0
  // CHECK: %[[G:.*]] = dist.all_gather %{{.*}} dim 0 {{.*}}dist.recomputed
  // CHECK: nn.mul %{{.*}}, %[[G]]
  %g = dist.all_gather %w dim 0 blocks 1 axes ["data"] reason "whole" {dist.stage = 0 : i64} : tensor<4x8xf32> -> tensor<8x8xf32>
  %0 = nn.mul %x, %g {dist.stage = 0 : i64} : tensor<8x8xf32>
  %1 = nn.add %0, %g {dist.stage = 1 : i64} : tensor<8x8xf32>
  %loss = nn.sum_micro_batches %1 {dist.stage = 1 : i64} : tensor<8x8xf32>
  %2 = nn.exp %1 {dist.stage = 1 : i64} : tensor<8x8xf32>
  %3 = nn.mul %2, %g {dist.stage = 0 : i64} : tensor<8x8xf32>
  %4 = dist.reduce_scatter sum %3 dim 0 blocks 1 axes ["data"] reason "parts" {dist.stage = 0 : i64} : tensor<8x8xf32> -> tensor<4x8xf32>
  %5 = nn.sum_micro_batches %4 {dist.stage = 0 : i64} : tensor<4x8xf32>
  %6 = nn.sub %w, %5 {dist.stage = 0 : i64} : tensor<4x8xf32>
  return %loss, %6 : tensor<8x8xf32>, tensor<4x8xf32>
}

// -----

// The forward and the backward of the last stage are one unit: what it gathers last for the one and first for the other, it gathers once.
nn.weight state @a "a" : tensor<8x8xf32> part tensor<4x8xf32> = dense<1.0> : tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}
nn.weight state @b "b" : tensor<8x8xf32> part tensor<4x8xf32> = dense<1.0> : tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}
// CHECK-LABEL: func.func @turns
func.func @turns(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<4x8xf32> {nn.state = @a}, tensor<4x8xf32> {nn.state = @b})
    attributes {dist.axes = [#dist.axis<"data" = 2>, #dist.axis<"stage" = 1>], dist.devices = array<i64: 0>, dist.schedule = "1f1b", dist.zero = 3 : i64} {
  %a = nn.parameter state @a : tensor<4x8xf32>
  %b = nn.parameter state @b : tensor<4x8xf32>
  // CHECK: dist.stage "F0" 0 on @d0
  // CHECK: %[[A:.*]] = dist.all_gather %{{.*}} reason "a"
  // CHECK: nn.mul %{{.*}}, %[[A]]
  // CHECK: %[[B:.*]] = dist.all_gather %{{.*}} reason "b"
  // CHECK: nn.mul %{{.*}}, %[[B]]
  // CHECK: nn.exp
  // CHECK-NEXT: nn.mul %{{.*}}, %[[B]]
  // CHECK: %[[A2:.*]] = dist.all_gather %{{.*}} reason "a"
  // CHECK: nn.mul %{{.*}}, %[[A2]]
  // CHECK-NOT: reason "b" {{.*}}dist.recomputed
  %ga = dist.all_gather %a dim 0 blocks 1 axes ["data"] reason "a" {dist.stage = 0 : i64} : tensor<4x8xf32> -> tensor<8x8xf32>
  %gb = dist.all_gather %b dim 0 blocks 1 axes ["data"] reason "b" {dist.stage = 0 : i64} : tensor<4x8xf32> -> tensor<8x8xf32>
  %0 = nn.mul %x, %ga {dist.stage = 0 : i64} : tensor<8x8xf32>
  %1 = nn.mul %0, %gb {dist.stage = 0 : i64} : tensor<8x8xf32>
  %loss = nn.sum_micro_batches %1 {dist.stage = 0 : i64} : tensor<8x8xf32>
  %2 = nn.exp %1 {dist.stage = 0 : i64} : tensor<8x8xf32>
  %3 = nn.mul %2, %gb {dist.stage = 0 : i64} : tensor<8x8xf32>
  %4 = nn.mul %3, %ga {dist.stage = 0 : i64} : tensor<8x8xf32>
  %5 = dist.reduce_scatter sum %3 dim 0 blocks 1 axes ["data"] reason "parts" {dist.stage = 0 : i64} : tensor<8x8xf32> -> tensor<4x8xf32>
  %6 = nn.sum_micro_batches %5 {dist.stage = 0 : i64} : tensor<4x8xf32>
  %7 = nn.sub %b, %6 {dist.stage = 0 : i64} : tensor<4x8xf32>
  %8 = dist.reduce_scatter sum %4 dim 0 blocks 1 axes ["data"] reason "parts" {dist.stage = 0 : i64} : tensor<8x8xf32> -> tensor<4x8xf32>
  %9 = nn.sum_micro_batches %8 {dist.stage = 0 : i64} : tensor<4x8xf32>
  %10 = nn.sub %a, %9 {dist.stage = 0 : i64} : tensor<4x8xf32>
  return %loss, %10, %7 : tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

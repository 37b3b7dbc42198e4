// RUN: partita-opt %s --dist-assign-stages | FileCheck %s --check-prefix=FAST
// RUN: partita-opt %s --dist-assign-stages=memory-try=1 | FileCheck %s --check-prefix=FIT
// RUN: partita-opt %s --dist-assign-stages=memory-try=8 | FileCheck %s --check-prefix=FIT

// The first op takes as long as the others together, and the weights of the
// others fill a device: what is fastest does not fit.
nn.weight @a "a" : tensor<256x256xf32> = dense<1.0> : tensor<256x256xf32>
nn.weight @b "b" : tensor<256x256xf32> = dense<2.0> : tensor<256x256xf32>
// FAST: nn.exp {{.*}}dist.stage = 0
// FAST: nn.add {{.*}}dist.stage = 1
// FAST: nn.add {{.*}}dist.stage = 1
// FIT: nn.exp {{.*}}dist.stage = 0
// FIT: nn.add {{.*}}dist.stage = 0
// FIT: nn.add {{.*}}dist.stage = 1
func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> attributes {dist.device_count = 2 : i64, dist.memory = 1048576 : i64} {
  %a = nn.parameter @a : tensor<256x256xf32>
  %b = nn.parameter @b : tensor<256x256xf32>
  %0 = nn.exp %x {nn.cluster = 0 : i64} : tensor<256x256xf32>
  %1 = nn.exp %0 {nn.cluster = 0 : i64} : tensor<256x256xf32>
  %2 = nn.exp %1 {nn.cluster = 0 : i64} : tensor<256x256xf32>
  %3 = nn.exp %2 {nn.cluster = 0 : i64} : tensor<256x256xf32>
  %4 = nn.add %3, %a {nn.cluster = 1 : i64} : tensor<256x256xf32>
  %5 = nn.add %4, %b {nn.cluster = 2 : i64} : tensor<256x256xf32>
  return %5 : tensor<256x256xf32>
}

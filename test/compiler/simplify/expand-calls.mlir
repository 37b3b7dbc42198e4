// RUN: partita-opt --pass-pipeline="builtin.module(func.func(nn-expand-calls))" %s | FileCheck %s --check-prefix=CPU
// RUN: partita-opt --pass-pipeline="builtin.module(func.func(nn-expand-calls{library-calls=false}))" %s | FileCheck %s
// RUN: sed "s/^module {/module attributes {plan.target = \"cuda:sm_90\"} {/" %s | partita-opt --pass-pipeline="builtin.module(func.func(nn-expand-calls))" | FileCheck %s

module {
  // Two numbers of each byte, a zero and a scale for each block. The last two
  // numbers of a row count for nothing.
  // CPU-LABEL: func.func @bits4
  // CPU-NEXT: nn.packed_dot
  // CPU-NEXT: return
  // CHECK-LABEL: func.func @bits4
  // CHECK-SAME: %[[X:.*]]: tensor<2x3x30xf32>, %[[W:.*]]: tensor<5x2x8xui8>, %[[S:.*]]: tensor<5x2xf32>, %[[Z:.*]]: tensor<5x2xf32>)
  // CHECK-DAG: %[[MASK:.*]] = nn.constant dense<15> : tensor<5x2x8xui8>
  // CHECK-DAG: %[[FOUR:.*]] = nn.constant dense<4> : tensor<5x2x8xui8>
  // CHECK: %[[HIGH:.*]] = nn.shift_right %[[W]], %[[FOUR]]
  // CHECK: nn.and %[[HIGH]], %[[MASK]]
  // CHECK: nn.concat {{.*}} dim 3 {{.*}} -> tensor<5x2x8x2xui8>
  // CHECK: %[[N:.*]] = nn.reshape {{.*}} -> tensor<5x2x16xui8>
  // CHECK: %[[F:.*]] = nn.cast %[[N]] : tensor<5x2x16xui8> -> tensor<5x2x16xf32>
  // CHECK: %[[ZB:.*]] = nn.broadcast %[[Z]] [0, 1]
  // CHECK: %[[D:.*]] = nn.sub %[[F]], %[[ZB]]
  // CHECK: %[[SB:.*]] = nn.broadcast %[[S]] [0, 1]
  // CHECK: %[[M:.*]] = nn.mul %[[D]], %[[SB]]
  // CHECK: %[[R:.*]] = nn.reshape %[[M]] : tensor<5x2x16xf32> -> tensor<5x32xf32>
  // CHECK: %[[C:.*]] = nn.slice %[[R]] {{.*}} -> tensor<5x30xf32>
  // CHECK: nn.dot %[[X]], %[[C]] batch [] x [] contract [2] x [1]
  func.func @bits4(%x: tensor<2x3x30xf32>, %w: tensor<5x2x8xui8>, %s: tensor<5x2xf32>, %z: tensor<5x2xf32>) -> tensor<2x3x5xf32> {
    %r = nn.packed_dot %x, %w, %s zeros %z : tensor<5x2xf32> bits 4 : tensor<2x3x30xf32>, tensor<5x2x8xui8>, tensor<5x2xf32> -> tensor<2x3x5xf32>
    return %r : tensor<2x3x5xf32>
  }

  // CPU-LABEL: func.func @bits8
  // CPU-NEXT: nn.packed_dot
  // CHECK-LABEL: func.func @bits8
  // CHECK-NOT: nn.concat
  // CHECK-DAG: %[[HALF:.*]] = nn.constant dense<1.280000e+02> : tensor<3x1x16xf32>
  // CHECK: nn.cast
  // CHECK: nn.sub %{{.*}}, %[[HALF]]
  // CHECK: nn.dot
  func.func @bits8(%x: tensor<2x16xf32>, %w: tensor<3x1x16xui8>, %s: tensor<3x1xf32>) -> tensor<2x3xf32> {
    %r = nn.packed_dot %x, %w, %s bits 8 : tensor<2x16xf32>, tensor<3x1x16xui8>, tensor<3x1xf32> -> tensor<2x3xf32>
    return %r : tensor<2x3xf32>
  }

  // The library has f32 only.
  // CPU-LABEL: func.func @halves
  // CPU: nn.dot
  func.func @halves(%x: tensor<2x16xf16>, %w: tensor<3x1x16xui8>, %s: tensor<3x1xf16>) -> tensor<2x3xf16> {
    %r = nn.packed_dot %x, %w, %s bits 8 : tensor<2x16xf16>, tensor<3x1x16xui8>, tensor<3x1xf16> -> tensor<2x3xf16>
    return %r : tensor<2x3xf16>
  }

  // Which places are written is found out for samples and places alone.
  // CPU-LABEL: func.func @update
  // CPU-NEXT: nn.update_slice
  // CPU-NEXT: return
  // CHECK-LABEL: func.func @update
  // CHECK-SAME: %[[X:.*]]: tensor<2x4x6x5xf16>, %[[U:.*]]: tensor<2x4x3x5xf16>, %[[S:.*]]: tensor<2xi64>)
  // CHECK: %[[I:.*]] = nn.iota 1 : tensor<2x6xi64>
  // CHECK: %[[B:.*]] = nn.broadcast %[[S]] [0] : tensor<2xi64> -> tensor<2x6xi64>
  // CHECK: %[[D:.*]] = nn.sub %[[I]], %[[B]]
  // CHECK: %[[M:.*]] = nn.rem %[[D]]
  // CHECK: %[[P:.*]] = nn.add %[[M]]
  // CHECK: %[[O:.*]] = nn.rem %[[P]]
  // CHECK: %[[W:.*]] = nn.compare lt %[[O]]
  // CHECK: %[[C:.*]] = nn.min %[[O]]
  // CHECK: %[[CB:.*]] = nn.broadcast %[[C]] [0, 2]
  // CHECK: %[[G:.*]] = nn.gather_elements %[[U]], %[[CB]] dim 2
  // CHECK: %[[WB:.*]] = nn.broadcast %[[W]] [0, 2]
  // CHECK: nn.select %[[WB]], %[[G]], %[[X]]
  func.func @update(%x: tensor<2x4x6x5xf16>, %u: tensor<2x4x3x5xf16>, %s: tensor<2xi64>) -> tensor<2x4x6x5xf16> {
    %r = nn.update_slice %x, %u, %s dim 2 : tensor<2x4x6x5xf16>, tensor<2x4x3x5xf16>, tensor<2xi64>
    return %r : tensor<2x4x6x5xf16>
  }

  // CHECK-LABEL: func.func @update_one
  // CHECK: %[[R:.*]] = nn.reshape %{{.*}} : tensor<2x4x1x5xf32> -> tensor<2x4x5xf32>
  // CHECK: %[[N:.*]] = nn.broadcast %[[R]] [0, 1, 3]
  // CHECK: nn.select %{{.*}}, %[[N]], %{{.*}}
  func.func @update_one(%x: tensor<2x4x6x5xf32>, %u: tensor<2x4x1x5xf32>, %s: tensor<2xi64>) -> tensor<2x4x6x5xf32> {
    %r = nn.update_slice %x, %u, %s dim 2 : tensor<2x4x6x5xf32>, tensor<2x4x1x5xf32>, tensor<2xi64>
    return %r : tensor<2x4x6x5xf32>
  }
}

// RUN: partita-opt --pass-pipeline="builtin.module(func.func(nn-expand-calls))" %s | FileCheck %s --check-prefix=CPU
// RUN: partita-opt --pass-pipeline="builtin.module(func.func(nn-expand-calls{library-calls=false}))" %s | FileCheck %s
// RUN: partita-opt --pass-pipeline="builtin.module(func.func(nn-expand-calls{library-calls=false keep-differentiable}))" %s | FileCheck %s --check-prefix=KEEP
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

  // Rows of other devices are 0.
  // CPU-LABEL: func.func @experts
  // CPU-NEXT: nn.expert_dot
  // CPU-NEXT: return
  // CHECK-LABEL: func.func @experts
  // CHECK-SAME: %[[X:.*]]: tensor<6x2x16xf32>, %[[W:.*]]: tensor<4x8x16xf32>, %[[E:.*]]: tensor<6x2xi64>)
  // CHECK: %[[G:.*]] = nn.gather %[[W]], %[[E]] dim 0
  // CHECK: %[[D:.*]] = nn.dot %[[X]], %[[G]] batch [0, 1] x [0, 1] contract [2] x [3]
  // CHECK: nn.compare ge %[[E]]
  // CHECK: nn.compare lt %[[E]]
  // CHECK: nn.select %{{.*}}, %[[D]], %{{.*}}
  func.func @experts(%x: tensor<6x2x16xf32>, %w: tensor<4x8x16xf32>, %e: tensor<6x2xi64>) -> tensor<6x2x8xf32> {
    %r = nn.expert_dot %x, %w experts %e : tensor<6x2x16xf32>, tensor<4x8x16xf32>, tensor<6x2xi64> -> tensor<6x2x8xf32>
    return %r : tensor<6x2x8xf32>
  }

  // There are none where nn.top_k has chosen.
  // CHECK-LABEL: func.func @chosen_experts
  // CHECK: nn.gather
  // CHECK-NEXT: nn.dot
  // CHECK-NEXT: return
  func.func @chosen_experts(%x: tensor<12x16xf32>, %w: tensor<4x8x16xf32>, %s: tensor<6x4xf32>) -> tensor<12x8xf32> {
    %k = nn.top_k largest %s : tensor<6x4xf32> -> tensor<6x2xi64>
    %e = nn.reshape %k : tensor<6x2xi64> -> tensor<12xi64>
    %r = nn.expert_dot %x, %w experts %e : tensor<12x16xf32>, tensor<4x8x16xf32>, tensor<12xi64> -> tensor<12x8xf32>
    return %r : tensor<12x8xf32>
  }

  // CPU-LABEL: func.func @expert_outer
  // CPU-NEXT: nn.expert_outer
  // CHECK-LABEL: func.func @expert_outer
  // CHECK-SAME: %[[DY:.*]]: tensor<6x8xf32>, %[[X:.*]]: tensor<6x16xf32>, %[[E:.*]]: tensor<6xi64>)
  // CHECK: %[[P:.*]] = nn.constant dense<{{\[}}[0, 1, 2, 3], {{.*}} : tensor<6x4xi64>
  // CHECK: nn.compare eq %{{.*}}, %[[P]]
  // CHECK: %[[S:.*]] = nn.select {{.*}} tensor<6x4x8xf32>
  // CHECK: nn.dot %[[S]], %[[X]] batch [] x [] contract [0] x [0]
  func.func @expert_outer(%dy: tensor<6x8xf32>, %x: tensor<6x16xf32>, %e: tensor<6xi64>) -> tensor<4x8x16xf32> {
    %r = nn.expert_outer %dy, %x experts %e : tensor<6x8xf32>, tensor<6x16xf32>, tensor<6xi64> -> tensor<4x8x16xf32>
    return %r : tensor<4x8x16xf32>
  }

  // Floats of experts are not the end, but where derivatives are.
  // KEEP-LABEL: func.func @packed_experts
  // KEEP-NOT: nn.packed_dot
  // KEEP: nn.expert_dot
  // CPU-LABEL: func.func @packed_experts
  // CPU-NEXT: nn.packed_dot
  // CHECK-LABEL: func.func @packed_experts
  // CHECK: nn.slice {{.*}} -> tensor<4x8x30xf32>
  // CHECK: nn.gather {{.*}} -> tensor<6x8x30xf32>
  // CHECK: nn.dot
  func.func @packed_experts(%x: tensor<6x30xf32>, %w: tensor<4x8x1x16xui8>, %s: tensor<4x8x1xf32>, %e: tensor<6xi64>) -> tensor<6x8xf32> {
    %r = nn.packed_dot %x, %w, %s experts %e : tensor<6xi64> bits 4 : tensor<6x30xf32>, tensor<4x8x1x16xui8>, tensor<4x8x1xf32> -> tensor<6x8xf32>
    return %r : tensor<6x8xf32>
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
  // CHECK: %[[L:.*]] = nn.compare lt %[[O]]
  // CHECK: %[[F:.*]] = nn.compare ge %[[B]], %{{.*}}
  // CHECK: %[[W:.*]] = nn.and %[[L]], %[[F]]
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

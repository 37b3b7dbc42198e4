// RUN: partita-opt --add-kernel-entries %s | FileCheck %s

// CHECK: llvm.func @sqrtf(f32) -> f32
llvm.func @sqrtf(f32) -> f32

// CHECK: llvm.func @k0(%[[BUFFERS:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64) attributes {no_unwind}
// CHECK: %[[S0:.*]] = llvm.getelementptr %[[BUFFERS]][0]
// CHECK: %[[A:.*]] = llvm.load %[[S0]]
// CHECK: %[[S1:.*]] = llvm.getelementptr %[[BUFFERS]][1]
// CHECK: %[[R:.*]] = llvm.load %[[S1]]
// CHECK: llvm.call @k0_range(%[[A]], %[[R]], %[[BEGIN]], %[[END]])
// CHECK: llvm.func internal @k0_range({{.*}}) attributes {always_inline, no_unwind}
llvm.func @k0(%a: !llvm.ptr, %r: !llvm.ptr, %begin: i64, %end: i64) {
  llvm.return
}

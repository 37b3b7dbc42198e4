// RUN: partita-opt --set-cuda-target=architecture=sm_90 %s | FileCheck %s
// RUN: not partita-opt --set-cuda-target=architecture=sm_75 %s 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: llvm.func @k0(%{{.*}}: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>
// CHECK-SAME: ["denormal-fp-math-f32", "preserve-sign,preserve-sign"]
// CHECK-SAME: target_cpu = "sm_90"
// OTHER: error: kernels are compiled for sm_80, sm_90, sm_100, sm_120, not for 'sm_75'
llvm.func @k0(%a: !llvm.ptr<1>) attributes {nn.grid = {threads = 128 : i64, row_threads = 1 : i64, width = 1 : i64}} {
  llvm.return
}

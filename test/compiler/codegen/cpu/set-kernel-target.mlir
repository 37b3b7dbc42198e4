// RUN: partita-opt --set-kernel-target=level=x86-64-v4 %s | FileCheck %s --check-prefix=V4
// RUN: partita-opt --set-kernel-target=level=x86-64-v3 %s | FileCheck %s --check-prefix=V3
// RUN: not partita-opt --set-kernel-target=level=x86-64-v2 %s 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: error: kernels are compiled for x86-64-v3 and x86-64-v4, not for 'x86-64-v2'

// V4: llvm.func @k0({{.*}} attributes {prefer_vector_width = "512", target_cpu = "x86-64-v4"}
// V3: llvm.func @k0({{.*}} attributes {prefer_vector_width = "256", target_cpu = "x86-64-v3"}
llvm.func @k0(%begin: i64) {
  llvm.return
}

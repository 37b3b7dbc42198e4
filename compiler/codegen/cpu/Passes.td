//===- Passes.td - Passes that compile kernels ---------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All passes run on the module of kernels that `--lower-clusters` makes. The
// pipelines of KernelPipeline.cpp run them on the one inside a model.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_PASSES_TD
#define PARTITA_COMPILER_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

class KernelPass<string flag> : Pass<flag, "::mlir::ModuleOp">;

def EmitKernelLoopsPass : KernelPass<"emit-kernel-loops"> {
  let summary = "write kernels as loops and vectors on flat buffers";
  let description = [{
    Reads each kernel's `nn.schedule` and lowers its stages to loops. The outer
    loop runs over the tiles from `%begin` to `%end`. In it each stage has its
    own loops, one of which runs over vectors if the stage's ops allow it.
    Operands and results do not overlap, except for the schedule's `in_place`
    pairs.

    ```mlir
    func.func @k0_relu(%a: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32>
        attributes {nn.schedule = ...} { linalg.generic ... }
    ```
    becomes
    ```mlir
    func.func @k0_relu(%a: memref<8xf32>, %out: memref<8xf32>, %begin: index, %end: index) {
      scf.for %i = %begin to %end step %c1 { ... }
    }
    ```

    If the kernels have `nn.reference`, their loops have no vectors, and the
    attribute moves to the module, where the later passes read it.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def AddKernelEntriesPass : KernelPass<"add-kernel-entries"> {
  let summary = "give each kernel the entry point that the runtime calls";
  let description = [{
    The entry point takes an array of pointers (runtime/abi/kernel.h) and passes
    them to the kernel's body, which is inlined into it.

    ```mlir
    llvm.func @k0_relu(%a: !llvm.ptr, %out: !llvm.ptr, %begin: i64, %end: i64)
    ```
    becomes
    ```mlir
    llvm.func @k0_relu(%buffers: !llvm.ptr, %begin: i64, %end: i64)
    llvm.func internal @k0_relu_range(%a: !llvm.ptr, %out: !llvm.ptr, %begin: i64, %end: i64)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SetKernelTargetPass : KernelPass<"set-kernel-target"> {
  let summary = "say which processors the kernels are compiled for";
  let description = [{
    Processors of the level x86-64-v4 have registers of 512 bits, those of
    x86-64-v3 of 256. The vectors in the kernels are the same for both: LLVM
    splits a vector that is wider than a register.

    ```mlir
    llvm.func @k0_relu(...) attributes {prefer_vector_width = "512", target_cpu = "x86-64-v4"}
    ```
  }];
  let options = [Option<"level", "level", "std::string", "\"x86-64-v3\"",
    "x86-64-v3 or x86-64-v4">];
}

#endif // PARTITA_COMPILER_CODEGEN_CPU_PASSES_TD

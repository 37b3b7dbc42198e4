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

def RoundKernelResultsPass : KernelPass<"round-kernel-results"> {
  let summary = "keep the rounding of narrow floats between ops";
  let description = [{
    Narrow floats are computed in f32, and every op rounds its result. The
    `fastmath` flag would allow LLVM to drop the conversions between ops of one
    kernel. Then numbers would depend on which ops are fused, and on which
    values are read outside. So this pass removes the flag.

    ```mlir
    %1 = arith.truncf %0 fastmath<contract> : f32 to bf16
    ```
    becomes
    ```mlir
    %1 = arith.truncf %0 : f32 to bf16
    ```
  }];
}

def ExpandKernelMathPass : KernelPass<"expand-kernel-math"> {
  let summary = "approximate exp and the like; write 16-bit floats in other types";
  let description = [{
    exp, tanh, erf and log become polynomials that are exact up to the last few
    bits, unless the module has `nn.reference`. All other functions call the
    mathematics library. A conversion between f64 and a 16-bit float goes
    through f32, and a select of such floats becomes one of their bits, because
    processors have no instruction for either.

    ```mlir
    %1 = arith.select %c, %a, %b : bf16
    ```
    becomes
    ```mlir
    %0 = arith.bitcast %a : bf16 to i16
    %1 = arith.bitcast %b : bf16 to i16
    %2 = arith.select %c, %0, %1 : i16
    %3 = arith.bitcast %2 : i16 to bf16
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
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

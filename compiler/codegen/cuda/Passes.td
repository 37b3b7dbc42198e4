//===- Passes.td - Passes that compile kernels for GPUs ------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All passes run on the module of kernels that `--lower-clusters` makes for
// CUDA devices. The pipelines of CudaPipeline.cpp run them on the one inside a
// model.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CUDA_PASSES_TD
#define PARTITA_COMPILER_CODEGEN_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

class CudaPass<string flag> : Pass<flag, "::mlir::ModuleOp">;

def EmitCudaKernelsPass : CudaPass<"emit-cuda-kernels"> {
  let summary = "write kernels as what each thread of a grid does";
  let description = [{
    Reads each kernel's `nn.schedule` and `nn.grid`. With `row_threads` 1, a thread
    computes `width` neighbouring rows, of one element each; with a `tile`, a
    block computes the rows of one, and what it transposes goes through shared
    memory (grid/Tile.h). Otherwise a warp or a block computes a row:
    its threads share the loops of each stage, combine what they have by
    shuffles, and keep temporaries in shared memory. With `columns`, a block has
    as many rows, and their threads alternate. Recurrent layers,
    scans of long rows, and few elements of them have kernels of their own.

    ```mlir
    func.func @k0_relu(%a: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32>
        attributes {nn.schedule = ..., nn.grid = {threads = 128, row_threads = 1, width = 1}} { linalg.generic ... }
    ```
    becomes
    ```mlir
    func.func @k0_relu(%a: memref<4096xf32, 1>, %out: memref<4096xf32, 1>) {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      ...
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def ExpandCudaFunctionsPass : CudaPass<"expand-cuda-functions"> {
  let summary = "compute functions without a mathematics library";
  let description = [{
    Behind `--expand-kernel-math`, every function that is left of the `math`
    dialect becomes arithmetic of f64, and so does the remainder of floats.

    ```mlir
    %1 = math.sin %0 : f32
    ```
    becomes
    ```mlir
    %1 = arith.extf %0 : f32 to f64
    ...
    %n = arith.truncf %m : f64 to f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def CheckCudaFunctionsPass : CudaPass<"check-cuda-functions"> {
  let summary = "refuse functions that GPUs have no code for";
  let description = [{
    Behind `--expand-cuda-functions`, what is left of the `math` dialect must be an
    instruction of PTX. There is no mathematics library to call. The error names
    the node.
  }];
}

def SetCudaTargetPass : CudaPass<"set-cuda-target"> {
  let summary = "say which GPUs the kernels are compiled for, and with how many threads they start";
  let description = [{
    Each function becomes the entry of a kernel, for blocks of as many threads
    as its `nn.grid` says. Denormal numbers are flushed to zero, as they are on
    CPUs.

    ```mlir
    llvm.func @k0_relu(...) attributes {nn.grid = {threads = 128, row_threads = 1, width = 1}}
    ```
    becomes
    ```mlir
    llvm.func @k0_relu(...) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>,
        passthrough = [["denormal-fp-math-f32", "preserve-sign,preserve-sign"]], target_cpu = "sm_90"}
    ```
  }];
  let options = [Option<"architecture", "architecture", "std::string", "\"sm_80\"",
    "sm_80, sm_90, sm_100 or sm_120">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // PARTITA_COMPILER_CODEGEN_CUDA_PASSES_TD

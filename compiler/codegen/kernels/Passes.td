//===- Passes.td - Passes on kernels of all backends ---------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All passes run on a module of kernels, between their loops and the LLVM
// dialect.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_KERNELS_PASSES_TD
#define PARTITA_COMPILER_CODEGEN_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

class KernelPass<string flag> : Pass<flag, "::mlir::ModuleOp">;

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

#endif // PARTITA_COMPILER_CODEGEN_KERNELS_PASSES_TD

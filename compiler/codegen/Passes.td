//===- Passes.td - Passes that lower clusters ----------------*- tablegen -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_PASSES_TD
#define PARTITA_COMPILER_CODEGEN_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerClustersPass : Pass<"lower-clusters", "::mlir::ModuleOp"> {
  let summary = "choose how each cluster is computed, and write the kernels in linalg";
  let description = [{
    Sets `lowering` on every `nn.cluster`: a library call or a kernel, as the
    cluster's kind says. A call that the library does not compute is an error.
    Kernels are functions on tensors in a module `kernels`. Clusters that
    compute the same share a kernel. The backend is that of the cluster's
    target; if some are processors and some are not, there is a second module.

    ```mlir
    %r = nn.cluster kernel (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
      %s = nn.relu %a : tensor<8xf32>
      nn.yield %s : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    module @kernels {
      func.func @k0_relu(%a: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> { linalg.generic ... }
    }
    %r = nn.cluster kernel (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
      ...
    } {lowering = #plan.kernel<"k0_relu", extent = 1, grain = 1, in_place = [0, 0]>}
    ```

    With `reference` the kernels have `nn.reference`: they are compiled to
    scalar loops, one element at a time.
  }];
  let options = [Option<"reference", "reference", "bool", /*default=*/"false",
    "scalar loops">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::partita::plan::PlanDialect"
  ];
}

#endif // PARTITA_COMPILER_CODEGEN_PASSES_TD

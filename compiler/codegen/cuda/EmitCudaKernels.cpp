//===- EmitCudaKernels.cpp - From linalg to the threads of a grid ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Passes.h"
#include "compiler/codegen/cuda/SpecialKernels.h"

#include "compiler/codegen/cuda/grid/EmitGrid.h"
#include "compiler/codegen/cuda/grid/KernelGroup.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen::cuda {

#define GEN_PASS_DEF_EMITCUDAKERNELSPASS
#include "compiler/codegen/cuda/Passes.h.inc"

namespace {

class EmitCudaKernelsPass
    : public impl::EmitCudaKernelsPassBase<EmitCudaKernelsPass> {
public:
  using EmitCudaKernelsPassBase::EmitCudaKernelsPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const SmallVector<func::FuncOp> kernels =
        llvm::to_vector(module.getOps<func::FuncOp>());
    for (func::FuncOp kernel : kernels)
      if (failed(emit(kernel)))
        return signalPassFailure();
    for (func::FuncOp kernel : kernels)
      kernel.erase();
  }

  LogicalResult emit(func::FuncOp kernel) {
    if (isGroup(kernel))
      return emitGroup(kernel, getOperation());
    // Only groups have its code.
    if (kernel.isPrivate())
      return success();
    if (const SpecialKernel *kind = findSpecialKernel(kernel)) {
      PARTITA_TRY(checkBlocks(kernel, kind->countBlocks(kernel)));
      kind->emit(kernel, getOperation());
      return success();
    }
    auto schedule = PARTITA_TRY(readGrid(kernel));
    PARTITA_TRY(checkBlocks(kernel, schedule.getBlocks()));
    emitGrid(kernel, schedule, getOperation());
    return success();
  }

  LogicalResult checkBlocks(func::FuncOp kernel, int64_t blocks) {
    if (blocks > std::numeric_limits<int32_t>::max())
      return kernel.emitError(
          "the kernel has more blocks than a grid can have");
    return success();
  }
};

} // namespace
} // namespace partita::codegen::cuda

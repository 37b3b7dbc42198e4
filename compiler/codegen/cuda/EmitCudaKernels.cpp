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
    for (func::FuncOp kernel : kernels) {
      if (isGroup(kernel)) {
        if (failed(emitGroup(kernel, module)))
          return signalPassFailure();
        continue;
      }
      // Only groups have its code.
      if (kernel.isPrivate())
        continue;
      if (const SpecialKernel *kind = findSpecialKernel(kernel)) {
        if (failed(kind->emit(kernel, module)))
          return signalPassFailure();
        continue;
      }
      FailureOr<GridSchedule> schedule = readGrid(kernel);
      if (failed(schedule) || failed(emitGrid(kernel, *schedule, module)))
        return signalPassFailure();
    }
    for (func::FuncOp kernel : kernels)
      kernel.erase();
  }
};

} // namespace
} // namespace partita::codegen::cuda

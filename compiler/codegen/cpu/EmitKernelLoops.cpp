//===- EmitKernelLoops.cpp - From linalg to loops and vectors -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Passes.h"

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/cpu/kernels/EmitLoops.h"
#include "compiler/codegen/kernels/KernelSchedule.h"
#include "compiler/crash/Place.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_EMITKERNELLOOPSPASS
#include "compiler/codegen/cpu/Passes.h.inc"

namespace {

class EmitKernelLoopsPass
    : public impl::EmitKernelLoopsPassBase<EmitKernelLoopsPass> {
public:
  using EmitKernelLoopsPassBase::EmitKernelLoopsPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>())) {
      crash::AtNode at(kernel.getLoc());
      FailureOr<KernelSchedule> schedule = readSchedule(kernel);
      if (failed(schedule))
        return signalPassFailure();
      emitLoops(kernel, *schedule, module);
      if (kernel->hasAttr(kReferenceAttr))
        module->setAttr(kReferenceAttr, UnitAttr::get(&getContext()));
      kernel.erase();
    }
  }
};

} // namespace
} // namespace partita::codegen

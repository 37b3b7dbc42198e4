//===- SetKernelTarget.cpp - Which processors kernels are for -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_SETKERNELTARGETPASS
#include "compiler/codegen/cpu/Passes.h.inc"

namespace {

class SetKernelTargetPass
    : public impl::SetKernelTargetPassBase<SetKernelTargetPass> {
public:
  using SetKernelTargetPassBase::SetKernelTargetPassBase;

private:
  void runOnOperation() override {
    if (level != "x86-64-v3" && level != "x86-64-v4") {
      getOperation().emitError()
          << "kernels are compiled for x86-64-v3 and x86-64-v4, not for '"
          << level << "'";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      if (function.isExternal())
        continue;
      function.setTargetCpu(StringRef(level));
      function.setPreferVectorWidth(
          StringRef(level == "x86-64-v4" ? "512" : "256"));
    }
  }
};

} // namespace
} // namespace partita::codegen

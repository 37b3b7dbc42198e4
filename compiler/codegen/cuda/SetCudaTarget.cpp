//===- SetCudaTarget.cpp - Which GPUs kernels are for ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CudaTarget.h"
#include "compiler/codegen/cuda/Passes.h"
#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace partita::codegen::cuda {

#define GEN_PASS_DEF_SETCUDATARGETPASS
#include "compiler/codegen/cuda/Passes.h.inc"

namespace {

class SetCudaTargetPass
    : public impl::SetCudaTargetPassBase<SetCudaTargetPass> {
public:
  using SetCudaTargetPassBase::SetCudaTargetPassBase;

private:
  void runOnOperation() override {
    if (!findGpu(architecture)) {
      getOperation().emitError() << describeUnknownGpu(architecture);
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal())
        setTarget(function);
  }

  void setTarget(LLVM::LLVMFuncOp function) {
    Builder b(&getContext());
    if (auto grid = function->getAttrOfType<DictionaryAttr>(kGridAttr))
      if (auto threads = grid.getAs<IntegerAttr>("threads"))
        function->setAttr(
            NVVM::NVVMDialect::getReqntidAttrName(),
            b.getDenseI32ArrayAttr({static_cast<int32_t>(threads.getInt())}));
    function->removeAttr(kGridAttr);
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                      b.getUnitAttr());
    function.setPassthroughAttr(b.getArrayAttr({b.getStrArrayAttr(
        {"denormal-fp-math-f32", "preserve-sign,preserve-sign"})}));
    function.setTargetCpu(StringRef(architecture));
  }
};

} // namespace
} // namespace partita::codegen::cuda

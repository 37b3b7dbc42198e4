//===- CheckCudaFunctions.cpp - Functions that GPUs have code for ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/Passes.h"

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace partita::codegen::cuda {

#define GEN_PASS_DEF_CHECKCUDAFUNCTIONSPASS
#include "compiler/codegen/cuda/Passes.h.inc"

namespace {

class CheckCudaFunctionsPass
    : public impl::CheckCudaFunctionsPassBase<CheckCudaFunctionsPass> {
public:
  using CheckCudaFunctionsPassBase::CheckCudaFunctionsPassBase;

private:
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
          isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
              math::FloorOp, math::FmaOp, math::RoundEvenOp, math::SqrtOp,
              math::TruncOp, math::CountLeadingZerosOp>(op))
        return WalkResult::advance();
      op->emitError() << "'" << op->getName().stripDialect() << "' of "
                      << getElementTypeOrSelf(op->getResult(0))
                      << " has no code for CUDA devices: compute it in f32, "
                         "or on CPU devices";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::codegen::cuda

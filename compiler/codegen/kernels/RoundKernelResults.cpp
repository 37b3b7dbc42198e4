//===- RoundKernelResults.cpp - Every op rounds what it gives -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_ROUNDKERNELRESULTSPASS
#include "compiler/codegen/kernels/Passes.h.inc"

namespace {

class RoundKernelResultsPass
    : public impl::RoundKernelResultsPassBase<RoundKernelResultsPass> {
public:
  using RoundKernelResultsPassBase::RoundKernelResultsPassBase;

private:
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (auto widened = dyn_cast<arith::ExtFOp>(op))
        widened.removeFastmathAttr();
      else if (auto narrowed = dyn_cast<arith::TruncFOp>(op))
        narrowed.removeFastmathAttr();
    });
  }
};

} // namespace
} // namespace partita::codegen

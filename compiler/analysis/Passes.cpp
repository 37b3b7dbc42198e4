//===- Passes.cpp - Passes that show what analyses find -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Passes.h"

#include "compiler/analysis/Rates.h"
#include "compiler/analysis/Samples.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace partita::analysis {

#define GEN_PASS_DEF_PRINTRATESPASS
#define GEN_PASS_DEF_PROVESAMPLESPASS
#include "compiler/analysis/Passes.h.inc"

namespace {

struct PrintRatesPass : impl::PrintRatesPassBase<PrintRatesPass> {
  void runOnOperation() override {
    Rates rates;
    Builder builder(&getContext());
    getOperation()->walk([&](Operation *op) {
      if (op->getNumResults() != 0)
        op->setDiscardableAttr(
            "rate", builder.getStringAttr(stringifyRate(rates.getRate(op))));
    });
  }
};

struct ProveSamplesPass : impl::ProveSamplesPassBase<ProveSamplesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        prove(function);
  }

  static void prove(func::FuncOp function) {
    const Samples samples(function);
    if (samples.count() == 0)
      return;
    std::string why;
    const SmallVector<int64_t> axes = proveSamples(function, samples, why);
    setSampleAxes(function, axes, why);
    if (!why.empty())
      emitRemark(samples.mixing() && samples.mixing()->op
                     ? samples.mixing()->op->getLoc()
                     : function.getLoc())
          << why;
  }
};

} // namespace
} // namespace partita::analysis

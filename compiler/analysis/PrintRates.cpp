//===- PrintRates.cpp - Show how often each value is computed -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Passes.h"
#include "compiler/analysis/Rates.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace partita::analysis {

#define GEN_PASS_DEF_PRINTRATESPASS
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
} // namespace

} // namespace partita::analysis

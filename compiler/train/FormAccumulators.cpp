//===- FormAccumulators.cpp - Sums over micro-batches ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/Passes.h"

#include "compiler/analysis/Rates.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_FORMACCUMULATORSPASS
#include "compiler/train/Passes.h.inc"

namespace {

/// What `reproducible` adds up has as many parts, whatever the number of
/// replicas: part c are the micro-batches m of a step with m modulo kParts = c.
/// Replica r of n has those with m modulo n = r, so whole parts.
constexpr int64_t kParts = 8;

struct FormAccumulatorsPass
    : impl::FormAccumulatorsPassBase<FormAccumulatorsPass> {
  using FormAccumulatorsPassBase::FormAccumulatorsPassBase;

  /// Replicas compute the micro-batches of a step together, each as many.
  LogicalResult dealOut(func::FuncOp function, IntegerAttr &count) {
    const int64_t replicas = dist::getGroupSize(
        function, Builder(&getContext()).getStrArrayAttr(dist::kDataAxis));
    if (replicas < 2 || !getOperation()->hasAttr(dist::kFullStepsAttr))
      return success();
    if (function->hasAttr(dist::kReproducibleAttr) && kParts % replicas != 0)
      return emitError(getOperation().getLoc())
             << "`reproducible` adds gradients up in a tree that 1, 2, 4 and "
             << kParts << " replicas have in common, not " << replicas
             << " (--data-parallel): take one of these, or leave "
                "`reproducible` out";
    if (count.getInt() % replicas != 0)
      return emitError(getOperation().getLoc())
             << "the micro-batches of a step (--micro-batches "
             << count.getInt() << ") cannot be dealt out to " << replicas
             << " replicas (--data-parallel) in equal parts: give a multiple "
                "of "
             << replicas << ", e.g. "
             << llvm::divideCeil(count.getInt(), replicas) * replicas;
    count = IntegerAttr::get(count.getType(), count.getInt() / replicas);
    function->setAttr(dist::kMicroBatchesAttr, count);
    return success();
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto count =
          function->getAttrOfType<IntegerAttr>(dist::kMicroBatchesAttr);
      if (!count)
        continue;
      const int64_t ofStep = count.getInt();
      if (failed(dealOut(function, count)))
        return signalPassFailure();
      const bool isReproducible = function->hasAttr(dist::kReproducibleAttr) &&
                                  getOperation()->hasAttr(dist::kFullStepsAttr);
      // Added to 0, a micro-batch alone has the bits of one of several: -0
      // becomes 0.
      if (count.getInt() < 2 && !(isReproducible && ofStep > 1))
        continue;
      const int64_t lanes =
          isReproducible
              ? std::min(kParts * count.getInt() / ofStep, count.getInt())
              : 1;
      int64_t bytes = 0;
      SmallVector<nn::SumMicroBatchesOp> sums;
      llvm::DenseSet<Operation *> same;
      analysis::Rates rates;
      function.walk([&](nn::SumMicroBatchesOp sum) {
        if (sum.getAccumulator())
          return;
        sums.push_back(sum);
        if (rates.getRate(sum.getX()) < analysis::Rate::micro_batch)
          same.insert(sum);
      });
      int64_t number = 0;
      for (nn::SumMicroBatchesOp sum : sums) {
        OpBuilder b(sum);
        // What is the same in all micro-batches is computed once.
        if (same.contains(sum)) {
          Value times = nn::ConstantOp::create(
              b, sum.getLoc(),
              nn::makeSplat(sum.getType(), double(count.getInt())));
          sum.getXMutable().assign(nn::MulOp::create(
              b, sum.getLoc(), sum.getType(), sum.getX(), times));
          continue;
        }
        Value accumulator = nn::AccumulatorOp::create(
            b, sum.getLoc(), sum.getType(), number++, lanes);
        bytes += (lanes - 1) * nn::getByteSize(sum.getType());
        Value added = nn::AddOp::create(b, sum.getLoc(), sum.getType(),
                                        accumulator, sum.getX());
        sum.getXMutable().assign(added);
        sum.getAccumulatorMutable().assign(accumulator);
      }
      if (bytes > 0)
        emitRemark(getOperation().getLoc())
            << "`reproducible` keeps each sum over micro-batches in " << lanes
            << " parts: this takes " << llvm::divideCeil(bytes, 1 << 20)
            << " MiB more for all devices of a replica together, and "
            << lanes - 1 << " more additions of each in a step";
    }
  }
};

} // namespace
} // namespace partita::train

//===- DistChooseSchedule.cpp - The schedule and its micro-batches --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/partition/ScheduleFile.h"

#include <set>

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTCHOOSESCHEDULEPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

struct DistChooseSchedulePass
    : impl::DistChooseSchedulePassBase<DistChooseSchedulePass> {
  LogicalResult run(func::FuncOp function) override {
    const schedule::ScheduleKind *kind = getScheduleKind(function);
    if (!kind)
      return failure();
    Builder builder(&getContext());
    if (!function->hasAttr(kOrdersAttr))
      function->setAttr(dist::kScheduleAttr, builder.getStringAttr(kind->name));
    if (function->hasAttr(dist::kMicroBatchesAttr))
      return success();
    // Stages and devices that have work.
    SmallVector<int64_t> devices = getDevices(function);
    std::set<int64_t> stages, used;
    for (Operation *op : getActiveOps(function.getBody().front()))
      if (int64_t stage = getStage(op);
          stage >= 0 && stage < static_cast<int64_t>(devices.size())) {
        stages.insert(stage);
        used.insert(devices[stage]);
      }
    function->setAttr(dist::kMicroBatchesAttr,
                      builder.getI64IntegerAttr(getMicroBatches(
                          function, *kind, stages.size(), used.size())));
    return success();
  }
};

} // namespace
} // namespace partita::pipeline

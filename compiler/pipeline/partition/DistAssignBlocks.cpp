//===- DistAssignBlocks.cpp - Blocks of a partition file ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/model/Decision.h"
#include "compiler/model/PartitionFile.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/BlockPatterns.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTASSIGNBLOCKSPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

struct DistAssignBlocksPass
    : impl::DistAssignBlocksPassBase<DistAssignBlocksPass> {
  using DistAssignBlocksPassBase::DistAssignBlocksPassBase;

  LogicalResult run(func::FuncOp function) override {
    PARTITA_TRY(checkOptions());
    const PartitionFile read =
        PARTITA_TRY(readPartitionFile(getOperation().getLoc(), file));
    PARTITA_TRY(writeBlocks(function, read));
    PARTITA_TRY(writeDecision(function, read));
    return writeOrders(function, read);
  }

private:
  Location placeOf(const FileText &text) {
    return FileLineColLoc::get(&getContext(), file, text.line, text.column);
  }

  LogicalResult writeBlocks(func::FuncOp function, const PartitionFile &read) {
    if (read.blocks.empty())
      return success();
    std::vector<int> blockOf = PARTITA_TRY(assignBlocks(function, read, file));
    Builder builder(&getContext());
    for (auto [op, block] :
         llvm::zip_equal(getActiveOps(function.getBody().front()), blockOf))
      op->setAttr(dist::kBlockAttr,
                  builder.getStringAttr(read.blocks[block].name.text));
    return success();
  }

  LogicalResult checkOptions() {
    Location loc = getOperation().getLoc();
    if (devices < 0 || devices > dist::kMostDevices)
      return emitError(loc)
             << "the number of devices must be 1 to " << dist::kMostDevices
             << ", not " << int64_t(devices);
    if (microBatches < 0)
      return emitError(loc) << "the number of micro-batches must be at least "
                               "1, not "
                            << int64_t(microBatches);
    if (stages < 0 || stages > kMostStages)
      return emitError(loc) << "the number of stages must be 1 to "
                            << kMostStages << ", not " << int64_t(stages);
    if (memory < 0)
      return emitError(loc) << "a device's memory must be at least 1 byte, not "
                            << int64_t(memory);
    if (schedule != kFormerSequential && !schedule::findSchedule(schedule) &&
        !isScheduleFile(schedule))
      return emitError(loc) << describeUnknownSchedule(schedule);
    return success();
  }

  /// The schedule that the options or else the file name, by its name of today;
  /// empty if neither does.
  std::string getScheduleName(const PartitionFile &read) {
    auto rename = [](Location loc) {
      emitRemark(loc) << "'" << kFormerSequential
                      << "' is called sequential now: say `schedule: "
                         "sequential`";
      return "sequential";
    };
    if (!schedule.empty())
      return schedule == kFormerSequential ? rename(getOperation().getLoc())
                                           : std::string(schedule);
    for (const std::optional<FileText> &said : {read.strategy, read.schedule})
      if (said && said->text == kFormerSequential)
        return rename(placeOf(*said));
    return read.schedule ? read.schedule->text : "";
  }

  LogicalResult writeDecision(func::FuncOp function,
                              const PartitionFile &read) {
    Builder builder(&getContext());
    // A mesh may say how many there are along its axis "stage".
    const int64_t said = devices > 0
                             ? int64_t(devices)
                             : getInteger(function, kDeviceCountAttr, 0);
    int64_t count = said;
    for (int64_t device : read.devices) {
      if (said > 0 && device >= said)
        return emitError(placeOf(read.devicesAt))
               << "unknown device " << device << ": there "
               << (said == 1 ? "is " : "are ") << abi::countOf(said, "device")
               << "; the nearest is " << said - 1;
      count = std::max(count, device + 1);
    }
    function->setAttr(kDeviceCountAttr, builder.getI64IntegerAttr(count));
    if (!read.devices.empty())
      function->setAttr(dist::kDevicesAttr,
                        builder.getDenseI64ArrayAttr(read.devices));
    if (std::string name = getScheduleName(read);
        !name.empty() && !isScheduleFile(name))
      function->setAttr(dist::kScheduleAttr, builder.getStringAttr(name));
    if (stages > 0)
      function->setAttr(kStageCountAttr, builder.getI64IntegerAttr(stages));
    if (int64_t bytes = memory > 0 ? int64_t(memory) : read.memory.value_or(0))
      function->setAttr(kMemoryAttr, builder.getI64IntegerAttr(bytes));
    int64_t batches = microBatches > 0 ? int64_t(microBatches)
                                       : read.microBatches.value_or(0);
    if (auto mixes =
            getOperation()->getAttrOfType<StringAttr>(analysis::kMixesAttr);
        mixes && batches > 1)
      return emitError(microBatches > 0 ? getOperation().getLoc()
                                        : placeOf({"", 1, 1}))
             << batches
             << " micro-batches a step (--micro-batches): the model is "
                "computed "
                "whole, because "
             << mixes.getValue() << "; leave it out";
    if (function->hasAttr(dist::kMicroBatchesAttr))
      PARTITA_TRY(checkMicroBatches(function, read));
    else if (batches > 0)
      function->setAttr(dist::kMicroBatchesAttr,
                        builder.getI64IntegerAttr(batches));
    writeStages(function, read);
    return success();
  }

  /// The sums over the micro-batches of a step know how many there are.
  LogicalResult checkMicroBatches(func::FuncOp function,
                                  const PartitionFile &read) {
    const int64_t known = getInteger(function, dist::kMicroBatchesAttr, 1);
    if (!read.microBatches || *read.microBatches == known)
      return success();
    return emitError(placeOf({"", 1, 1}))
           << "`micro_batches` is " << *read.microBatches
           << ", and a replica has " << abi::countOf(known, "micro-batch", "es")
           << " of a step of training: leave it out here, and say it where the "
              "training is described (--micro-batches)";
  }

  void writeStages(func::FuncOp function, const PartitionFile &read) {
    Builder builder(&getContext());
    if (read.blocks.empty() && !read.stages)
      return;
    SmallVector<Attribute> order, stages;
    for (const FileBlock &block : read.blocks)
      order.push_back(builder.getStringAttr(block.name.text));
    function->setAttr(kBlockOrderAttr, builder.getArrayAttr(order));
    function->setAttr(
        kAutoStageAttr,
        builder.getStringAttr(read.autoStage ? StringRef(read.autoStage->text)
                                             : "same_as_device"));
    if (!read.stages)
      return;
    for (const std::vector<FileText> &stage : *read.stages) {
      SmallVector<Attribute> blocks;
      for (const FileText &block : stage)
        blocks.push_back(builder.getStringAttr(block.text));
      stages.push_back(builder.getArrayAttr(blocks));
    }
    function->setAttr(kStageBlocksAttr, builder.getArrayAttr(stages));
  }

  /// A file of orders says what nobody else has said: stages, their devices and
  /// micro-batches. What does not fit together is found when the units are
  /// there (PlanBuild).
  LogicalResult writeOrders(func::FuncOp function, const PartitionFile &read) {
    if (!isScheduleFile(schedule))
      return success();
    auto orders = PARTITA_TRY(readScheduleFile(function, schedule));
    Builder builder(&getContext());
    const auto ranks = static_cast<int64_t>(orders.ofRank.size()),
               known = getInteger(function, kDeviceCountAttr, 0),
               count = static_cast<int64_t>(orders.rankOf.size());
    if (ranks > dist::kMostDevices)
      return emitError(getScheduleFileLoc(function))
             << "orders " << ranks << " devices; at most " << dist::kMostDevices
             << " are";
    if (devices > 0 && known < ranks)
      return emitError(getScheduleFileLoc(function))
             << "orders " << abi::countOf(ranks, "device") << ", and there "
             << (known == 1 ? "is " : "are ") << known << ": say --devices "
             << ranks;
    if (known < ranks)
      function->setAttr(kDeviceCountAttr, builder.getI64IntegerAttr(ranks));
    if (stages > 0 && stages != count)
      return emitError(getScheduleFileLoc(function))
             << "orders " << abi::countOf(count, "stage") << ", and "
             << int64_t(stages) << " are asked for: leave out --stages";
    if (read.devices.empty() && !read.stages && read.blocks.empty())
      function->setAttr(dist::kDevicesAttr,
                        builder.getDenseI64ArrayAttr(
                            llvm::to_vector_of<int64_t>(orders.rankOf)));
    if (!function->hasAttr(dist::kMicroBatchesAttr))
      function->setAttr(dist::kMicroBatchesAttr,
                        builder.getI64IntegerAttr(orders.microBatches));
    return success();
  }
};

} // namespace
} // namespace partita::pipeline

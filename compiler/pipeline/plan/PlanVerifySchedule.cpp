//===- PlanVerifySchedule.cpp - Proves that a plan finishes ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Passes.h"

#include "runtime/abi/ScheduleCheck.h"

#include "llvm/ADT/DenseMap.h"

namespace partita::pipeline {
#define GEN_PASS_DEF_PLANVERIFYSCHEDULEPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

/// The program of one device as the check sees it: an entry for every
/// instruction, so that bytes which change hands within a unit are checked too.
/// The constant region follows the arena.
class DeviceModel {
public:
  DeviceModel(plan::DeviceOp device, const llvm::StringMap<int> &channels)
      : device(device), channels(channels) {
    checked.name = device.getDeviceName().str();
    checked.arena_bytes = device.getArenaBytes() + device.getConstantBytes();
    for (auto slot : device.getOps<plan::SlotOp>())
      numbers[slot.getSlot()] = numbers.size() + 1;
  }

  abi::CheckedDevice build() {
    for (auto load : device.getOps<plan::LoadOp>())
      for (Operation &op : load.getBody().front())
        addInstruction(cast<plan::InstructionOpInterface>(op), "load", 0, {});
    for (Operation &op : device.getBody().front())
      if (auto step = dyn_cast<plan::ScheduleStepOpInterface>(op))
        addStep(step);
    return std::move(checked);
  }

private:
  void addStep(plan::ScheduleStepOpInterface step) {
    int microBatch = step.getStepMicroBatch();
    if (auto run = dyn_cast<plan::RunOp>(*step)) {
      auto unit = cast<plan::UnitOp>(
          SymbolTable::lookupSymbolIn(device, run.getUnitAttr()));
      for (Operation &op : unit.getBody().front())
        addInstruction(cast<plan::InstructionOpInterface>(op),
                       unit.getSymName(), microBatch, run.getBindings());
      return;
    }
    abi::CheckedStep entry;
    entry.micro_batch = microBatch;
    FlatSymbolRefAttr channel;
    if (auto send = dyn_cast<plan::SendOp>(*step)) {
      entry.kind = abi::CheckedStep::Kind::send;
      channel = send.getChannelAttr();
    } else if (auto recv = dyn_cast<plan::RecvOp>(*step)) {
      entry.kind = abi::CheckedStep::Kind::recv;
      channel = recv.getChannelAttr();
    } else if (auto release = dyn_cast<plan::ReleaseOp>(*step)) {
      entry.kind = abi::CheckedStep::Kind::release;
      channel = release.getChannelAttr();
    } else if (auto wait = dyn_cast<plan::WaitOp>(*step)) {
      entry.kind = abi::CheckedStep::Kind::wait;
      channel = wait.getChannelAttr();
    } else {
      entry.name = step->getName().stripDialect().str();
    }
    if (channel) {
      entry.channel = channels.lookup(channel.getValue());
      entry.name = channel.getValue().str();
    }
    for (Value slot : step.getReadSlots())
      use(entry.reads, slot, microBatch);
    for (Value slot : step.getWrittenSlots())
      use(entry.writes, slot, microBatch);
    checked.steps.push_back(std::move(entry));
  }

  void addInstruction(plan::InstructionOpInterface op, StringRef unit,
                      int microBatch, ValueRange bindings) {
    abi::CheckedStep entry;
    entry.micro_batch = microBatch;
    entry.name = unit.str();
    if (auto label = op->getAttrOfType<StringAttr>("label"))
      entry.name += ": " + label.str();
    auto bind = [&](Value slot) {
      auto argument = dyn_cast<BlockArgument>(slot);
      return argument ? bindings[argument.getArgNumber()] : slot;
    };
    for (Value slot : op.getInstructionReads())
      use(entry.reads, bind(slot), microBatch);
    for (Value slot : op.getInstructionWrites())
      use(entry.writes, bind(slot), microBatch);
    checked.steps.push_back(std::move(entry));
  }

  /// A value is a slot on a micro-batch; constants are the same for all.
  void use(std::vector<abi::CheckedRange> &ranges, Value value,
           int microBatch) {
    auto slot = value.getDefiningOp<plan::SlotOp>();
    if (slot.getSpace() == plan::Space::weight)
      return;
    bool isConstant = slot.getSpace() == plan::Space::constant;
    int64_t begin =
        *slot.getOffset() + (isConstant ? device.getArenaBytes() : 0);
    ranges.push_back(
        {begin, begin + slot.getByteSize(),
         (numbers.lookup(value) << 24) + (isConstant ? 0 : microBatch)});
  }

  plan::DeviceOp device;
  const llvm::StringMap<int> &channels;
  llvm::DenseMap<Value, int64_t> numbers;
  abi::CheckedDevice checked;
};

struct PlanVerifySchedulePass
    : impl::PlanVerifySchedulePassBase<PlanVerifySchedulePass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    llvm::StringMap<int> channels;
    for (auto channel : getOperation().getOps<plan::ChannelOp>())
      channels.try_emplace(channel.getSymName(), channels.size());
    std::vector<abi::CheckedDevice> devices;
    for (auto device : getOperation().getOps<plan::DeviceOp>())
      devices.push_back(DeviceModel(device, channels).build());
    std::string error = abi::checkSchedule(devices);
    if (error.empty())
      return;
    emitError(getOperation().getLoc()) << "the plan is wrong: " << error;
    signalPassFailure();
  }
};

} // namespace
} // namespace partita::pipeline

//===- PlanSteps.cpp - The entries of a program ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/plan/PlanDialect.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace partita::plan;

//===----------------------------------------------------------------------===//
// Run
//===----------------------------------------------------------------------===//

static UnitOp lookUpUnit(RunOp run) {
  return dyn_cast_or_null<UnitOp>(
      SymbolTable::lookupSymbolIn(run->getParentOp(), run.getUnitAttr()));
}

static Value getBound(RunOp run, UnitOp unit, Value slot) {
  auto argument = dyn_cast<BlockArgument>(slot);
  if (!argument || argument.getOwner() != &unit.getBody().front())
    return slot;
  return run.getBindings()[argument.getArgNumber()];
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &) {
  UnitOp unit = lookUpUnit(*this);
  if (!unit)
    return emitOpError("(C1) ")
           << getUnitAttr() << " is not a unit of its device";
  auto arguments = unit.getBody().getArguments();
  if (arguments.size() != getBindings().size())
    return emitOpError("(C2) binds ")
           << getBindings().size() << " slots, the unit has "
           << arguments.size() << " arguments";
  for (auto [argument, binding] : llvm::zip(arguments, getBindings()))
    if (argument.getType() != binding.getType())
      return emitOpError("(C2) binds ")
             << binding.getType() << " to argument " << argument.getArgNumber()
             << " of type " << argument.getType();
  return success();
}

int64_t RunOp::getStepMicroBatch() { return getMicroBatch(); }

SmallVector<Value> RunOp::getReadSlots() {
  UnitOp unit = lookUpUnit(*this);
  llvm::SetVector<Value> read, written;
  for (Operation &op : unit.getBody().front()) {
    auto instruction = cast<InstructionOpInterface>(op);
    for (Value slot : instruction.getInstructionReads())
      if (!written.contains(getBound(*this, unit, slot)))
        read.insert(getBound(*this, unit, slot));
    for (Value slot : instruction.getInstructionWrites())
      written.insert(getBound(*this, unit, slot));
  }
  return read.takeVector();
}

SmallVector<Value> RunOp::getWrittenSlots() {
  UnitOp unit = lookUpUnit(*this);
  llvm::SetVector<Value> written;
  for (Operation &op : unit.getBody().front())
    for (Value slot : cast<InstructionOpInterface>(op).getInstructionWrites())
      written.insert(getBound(*this, unit, slot));
  return written.takeVector();
}

Queue RunOp::getQueue() { return Queue::compute; }
int64_t RunOp::getStepDurationNs() { return lookUpUnit(*this).getDurationNs(); }

//===----------------------------------------------------------------------===//
// Send, recv, release, wait
//===----------------------------------------------------------------------===//

/// Checks the channel of a step, that the step's device is on the right end of
/// it, and the bytes of its slot (`slot` null: a token, a release
/// or a wait).
static LogicalResult verifyChannel(Operation *op, FlatSymbolRefAttr name,
                                   bool atSource, bool hasBytes, Value slot,
                                   SymbolTableCollection &symbols) {
  auto device = op->getParentOfType<DeviceOp>();
  auto channel =
      symbols.lookupNearestSymbolFrom<ChannelOp>(device->getParentOp(), name);
  if (!channel)
    return op->emitOpError("(C1) ") << name << " is not a channel";
  StringRef end = atSource ? channel.getSource() : channel.getTarget();
  if (end != device.getSymName())
    return op->emitOpError("(C1) stands on @")
           << device.getSymName() << ", but the "
           << (atSource ? "source" : "target") << " of channel " << name
           << " is @" << end;
  if (!hasBytes)
    return success();
  int64_t bytes =
      slot ? getByteSize(cast<SlotType>(slot.getType()).getTensor()) : 0;
  if (bytes != static_cast<int64_t>(channel.getBytes()))
    return op->emitOpError("(C2) has a slot of ")
           << bytes << " bytes, channel " << name << " carries "
           << channel.getBytes();
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), true, true, getSlot(), symbols);
}
LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), false, true, getSlot(),
                       symbols);
}
LogicalResult ReleaseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), false, false, {}, symbols);
}
LogicalResult WaitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyChannel(*this, getChannelAttr(), true, false, {}, symbols);
}

static SmallVector<Value> list(Value slot) {
  return slot ? SmallVector<Value>{slot} : SmallVector<Value>{};
}

int64_t SendOp::getStepMicroBatch() { return getMicroBatch(); }
SmallVector<Value> SendOp::getReadSlots() { return list(getSlot()); }
SmallVector<Value> SendOp::getWrittenSlots() { return {}; }
Queue SendOp::getQueue() { return Queue::communication; }
int64_t SendOp::getStepDurationNs() { return 0; }

int64_t RecvOp::getStepMicroBatch() { return getMicroBatch(); }
SmallVector<Value> RecvOp::getReadSlots() { return {}; }
SmallVector<Value> RecvOp::getWrittenSlots() { return list(getSlot()); }
Queue RecvOp::getQueue() { return Queue::communication; }
int64_t RecvOp::getStepDurationNs() { return 0; }

int64_t ReleaseOp::getStepMicroBatch() { return getMicroBatch(); }
SmallVector<Value> ReleaseOp::getReadSlots() { return {}; }
SmallVector<Value> ReleaseOp::getWrittenSlots() { return {}; }
Queue ReleaseOp::getQueue() { return Queue::communication; }
int64_t ReleaseOp::getStepDurationNs() { return 0; }

int64_t WaitOp::getStepMicroBatch() { return getMicroBatch(); }
SmallVector<Value> WaitOp::getReadSlots() { return {}; }
SmallVector<Value> WaitOp::getWrittenSlots() { return {}; }
Queue WaitOp::getQueue() { return Queue::communication; }
int64_t WaitOp::getStepDurationNs() { return 0; }

//===----------------------------------------------------------------------===//
// Inputs and outputs
//===----------------------------------------------------------------------===//

static LogicalResult verifyPort(Operation *op, PortKind kind, int64_t index,
                                Value slot) {
  Operation *module = op->getParentOp()->getParentOp();
  int64_t seen = 0;
  for (Operation &candidate : module->getRegion(0).front()) {
    auto port = dyn_cast<PortOp>(candidate);
    if (!port || port.getKind() != kind || seen++ != index)
      continue;
    int64_t bytes = getByteSize(cast<RankedTensorType>(port.getType()));
    int64_t held = getByteSize(cast<SlotType>(slot.getType()).getTensor());
    if (bytes != held)
      return op->emitOpError("(C1) has a slot of ")
             << held << " bytes, port '" << port.getPortName() << "' has "
             << bytes;
    return success();
  }
  return op->emitOpError("(C1) names ")
         << stringifyPortKind(kind) << " " << index << " of " << seen;
}

LogicalResult LoadInputOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPort(*this, PortKind::input, getPort(), getSlot());
}
LogicalResult StoreOutputOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPort(*this, PortKind::output, getPort(), getSlot());
}

int64_t LoadInputOp::getStepMicroBatch() { return getMicroBatch(); }
SmallVector<Value> LoadInputOp::getReadSlots() { return {}; }
SmallVector<Value> LoadInputOp::getWrittenSlots() { return list(getSlot()); }
Queue LoadInputOp::getQueue() { return Queue::host; }
int64_t LoadInputOp::getStepDurationNs() { return 0; }

int64_t StoreOutputOp::getStepMicroBatch() { return getMicroBatch(); }
SmallVector<Value> StoreOutputOp::getReadSlots() { return list(getSlot()); }
SmallVector<Value> StoreOutputOp::getWrittenSlots() { return {}; }
Queue StoreOutputOp::getQueue() { return Queue::host; }
int64_t StoreOutputOp::getStepDurationNs() { return 0; }

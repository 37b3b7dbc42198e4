//===- PlanVerifySchedule.cpp - Proves that a plan finishes ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Passes.h"

#include "runtime/abi/ScheduleCheck.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_PLANVERIFYSCHEDULEPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

/// A program as the check sees it.
class ProgramModel {
public:
  /// `numbers`: of channels and collectives.
  ProgramModel(plan::ProgramOp program,
               const llvm::DenseMap<Attribute, int> &numbers,
               llvm::StringMap<int64_t> &states)
      : program(program), numbers(numbers), states(states) {
    plan::DeviceOp device = plan::getFirstDevice(program);
    checked.device =
        (device ? device.getDeviceName() : program.getSymName()).str();
    checked.arena_bytes = program.getArenaBytes().value_or(0);
    checked.constant_bytes = program.getConstantBytes().value_or(0);
  }

  LogicalResult build() {
    Block &body = program.getBody().front();
    llvm::DenseMap<Value, int> frames;
    for (auto frame : body.getOps<plan::FrameOp>()) {
      frames[frame.getFrame()] = static_cast<int>(checked.frames.size());
      checked.frames.push_back({frame.getBytes(), frame.getCopies().vec()});
    }
    for (auto slot : body.getOps<plan::SlotOp>()) {
      if (!slot.hasWeight() && !slot.getOffset())
        return slot.emitError("has no place: run --plan-place before");
      slots[slot.getSlot()] = static_cast<int>(checked.slots.size());
      checked.slots.push_back(
          {slot.getSpace(),
           slot.getFrame() ? frames.lookup(slot.getFrame()) : -1,
           slot.getSpace() == plan::Space::state
               ? states.try_emplace(*slot.getWeight(), states.size())
                     .first->second
               : slot.getOffset().value_or(0),
           slot.getByteSize(),
           slot.getSpan(),
           slot.getSum() ? slots.lookup(slot.getSum()) : -1,
           static_cast<int>(slot.getLane().value_or(0)),
           {},
           slot.getRenewed(),
           isCarried(slot)});
      for (Value member : slot.getMembers())
        checked.slots.back().members.push_back(slots.lookup(member));
    }
    for (auto load : body.getOps<plan::LoadOp>())
      checked.load = describe(load.getBody().front(), "load");
    for (auto unit : body.getOps<plan::UnitOp>()) {
      units[FlatSymbolRefAttr::get(unit.getSymNameAttr())] =
          static_cast<int>(checked.units.size());
      checked.units.push_back(
          describe(unit.getBody().front(), unit.getSymName()));
    }
    for (auto action : body.getOps<plan::ActionOpInterface>())
      addAction(action);
    return success();
  }

  abi::CheckedProgram checked;

private:
  static bool isCarried(plan::SlotOp slot) {
    if (slot.getSpace() != plan::Space::state)
      return false;
    auto weight = SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
        slot->getParentOfType<ModuleOp>(), slot.getWeightAttr());
    return weight && weight.isCarried();
  }

  void addAction(plan::ActionOpInterface action) {
    abi::ProgramAction entry;
    entry.kind = action.getActionKind();
    entry.micro_batch = static_cast<int>(action.getActionMicroBatch());
    Attribute subject = action.getActionSubject();
    if (auto port = dyn_cast<IntegerAttr>(subject))
      entry.subject = static_cast<int>(port.getInt());
    else if (entry.kind == abi::ActionKind::run)
      entry.subject = units.lookup(subject);
    else
      entry.subject = numbers.lookup(subject);
    if (Value slot = action.getActionSlot())
      entry.slot = slots.lookup(slot);
    checked.actions.push_back(entry);
  }

  abi::CheckedUnit describe(Block &body, StringRef unit) const {
    abi::CheckedUnit described;
    for (auto op : body.getOps<plan::InstructionOpInterface>()) {
      abi::CheckedInstruction &instruction = described.emplace_back();
      instruction.name = unit.str();
      if (auto label = op->getAttrOfType<StringAttr>("label"))
        instruction.name += ": " + label.str();
      for (Value slot : op.getInstructionReads())
        instruction.reads.push_back(use(slot));
      for (Value slot : op.getInstructionWrites())
        instruction.writes.push_back(use(slot));
    }
    return described;
  }

  abi::CheckedUse use(Value slot) const {
    int index = slots.lookup(slot);
    return {index, 0, checked.slots[index].bytes};
  }

  plan::ProgramOp program;
  const llvm::DenseMap<Attribute, int> &numbers;
  llvm::DenseMap<Value, int> slots;
  llvm::StringMap<int64_t> &states; ///< numbers; those of all programs
  llvm::DenseMap<Attribute, int> units;
};

struct PlanVerifySchedulePass
    : impl::PlanVerifySchedulePassBase<PlanVerifySchedulePass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    llvm::DenseMap<Attribute, int> numbers;
    abi::CheckedNames names;
    for (auto channel : getOperation().getOps<plan::ChannelOp>()) {
      numbers[FlatSymbolRefAttr::get(channel.getSymNameAttr())] =
          static_cast<int>(names.channels.size());
      names.channels.push_back(channel.getValue().str());
    }
    for (auto collective : getOperation().getOps<plan::CollectiveOp>()) {
      numbers[FlatSymbolRefAttr::get(collective.getSymNameAttr())] =
          static_cast<int>(names.collectives.size());
      names.collectives.push_back(collective.getValue().str());
    }
    for (auto port : getOperation().getOps<plan::PortOp>()) {
      if (port.getKind() == plan::PortKind::input)
        names.inputs.push_back(port.getPortName().str());
      if (port.getKind() == plan::PortKind::output)
        names.outputs.push_back(port.getPortName().str());
    }
    for (auto check : getOperation().getOps<plan::CheckOp>())
      names.checks.push_back(check.getNode().str());
    int64_t microBatches = 0;
    for (auto model : getOperation().getOps<plan::ModelOp>())
      microBatches = model.getMicroBatches();
    std::vector<abi::CheckedProgram> programs;
    llvm::StringMap<int64_t> states;
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      ProgramModel model(program, numbers, states);
      if (failed(model.build()))
        return signalPassFailure();
      programs.push_back(std::move(model.checked));
      programs.back().micro_batches = static_cast<int>(microBatches);
    }
    std::string error = abi::checkSchedule(programs, names);
    if (error.empty())
      return;
    emitError(getOperation().getLoc()) << "the plan is wrong: " << error;
    signalPassFailure();
  }
};

} // namespace
} // namespace partita::pipeline

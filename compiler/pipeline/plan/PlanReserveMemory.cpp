//===- PlanReserveMemory.cpp - What a device holds beside its arena -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/DeviceMemory.h"

#include "llvm/ADT/DenseSet.h"

namespace partita::pipeline {
#define GEN_PASS_DEF_PLANRESERVEMEMORYPASS
#include "compiler/pipeline/Passes.h.inc"
} // namespace partita::pipeline

using namespace mlir;

namespace partita::pipeline {
namespace {

/// Walks the instructions of a program.
class MemoryPlanner {
public:
  MemoryPlanner(plan::ProgramOp program, int64_t workspace)
      : backend(codegen::getBackend(program)), perCall(workspace) {}

  void visitUnit(Block &body) {
    for (Operation &op : body) {
      auto call = dyn_cast<plan::CallOp>(op);
      if (!call) {
        for (Value operand : op.getOperands())
          readAsItLies(operand);
        continue;
      }
      visitWorkspace(call);
      plan::CallAttr attr = call.getCall();
      for (auto [index, view] : llvm::enumerate(attr.getOperands())) {
        Value slot = getSlot(call, view);
        if (std::optional<int64_t> bytes =
                backend.getPackedBytes(attr, index, getElementType(slot));
            bytes && isParameter(slot))
          pack(slot, attr, *bytes);
        else
          readAsItLies(slot);
      }
      for (plan::ViewAttr view :
           {attr.getBias(), attr.getMaskMul(), attr.getMaskAdd()})
        if (view)
          readAsItLies(getSlot(call, view));
      for (plan::PostOpAttr post : attr.getPostOps())
        if (post.getView())
          readAsItLies(getSlot(call, post.getView()));
      if (plan::RecurrentAttr layer = attr.getRecurrent())
        for (plan::ViewAttr view : layer.getViews())
          if (view)
            readAsItLies(getSlot(call, view));
    }
  }

  void visitLoad(Block &body) {
    for (auto call : body.getOps<plan::CallOp>())
      visitWorkspace(call);
  }

  void readAsItLies(Value slot) {
    auto op = slot.getDefiningOp<plan::SlotOp>();
    const bool isHeld =
        op && (!op.isWritable() || op.getSpace() == plan::Space::state);
    if (isHeld && read.insert(op).second)
      parameters +=
          llvm::alignTo(op.getByteSize(), backend.getWeightAlignment());
  }

  int64_t parameters = 0, packed = 0;
  int64_t getWorkspace() const { return workspace; }

private:
  static Value getSlot(plan::CallOp call, plan::ViewAttr view) {
    size_t inputs = call.getInputs().size(), index = view.getValue();
    return index < inputs ? call.getInputs()[index]
                          : call.getOutputs()[index - inputs];
  }

  static Type getElementType(Value slot) {
    return cast<plan::SlotType>(slot.getType()).getTensor().getElementType();
  }

  static bool isParameter(Value slot) {
    auto op = slot.getDefiningOp<plan::SlotOp>();
    return op && !op.isWritable();
  }

  void pack(Value slot, plan::CallAttr attr, int64_t bytes) {
    // The same bytes are reordered once for all calls that are alike. Another
    // call may want another order, and must get it on whatever device it is.
    if (isParameter(slot) && packs.insert({slot.getDefiningOp(), attr}).second)
      packed += bytes;
  }

  void visitWorkspace(plan::CallOp call) {
    plan::CallAttr attr = call.getCall();
    bool isPacked = true;
    for (auto [index, view] : llvm::enumerate(attr.getOperands())) {
      Value slot = getSlot(call, view);
      isPacked &= isParameter(slot) ||
                  !backend.getPackedBytes(attr, index, getElementType(slot));
    }
    workspace =
        std::max(workspace, perCall + backend.getScratchBytes(attr, isPacked));
  }

  const codegen::Backend &backend;
  const int64_t perCall;
  int64_t workspace = 0; // none without library calls
  llvm::DenseSet<Operation *> read;
  llvm::DenseSet<std::pair<Operation *, Attribute>> packs;
};

/// `workspace`: bytes of scratch for any library call on each core; attention
/// has its scores on top.
void reserveMemory(plan::ProgramOp program, int64_t workspace) {
  MemoryPlanner planner(program, workspace);
  for (Operation &op : program.getBody().front()) {
    if (auto unit = dyn_cast<plan::UnitOp>(op))
      planner.visitUnit(unit.getBody().front());
    else if (auto load = dyn_cast<plan::LoadOp>(op))
      planner.visitLoad(load.getBody().front());
    else if (auto step = dyn_cast<plan::ScheduleStepOpInterface>(op))
      if (Value slot = step.getStepSlot())
        planner.readAsItLies(slot);
  }
  program.setParameterBytes(planner.parameters);
  program.setPackedBytes(planner.packed);
  program.setWorkspaceBytes(planner.getWorkspace());
}

struct PlanReserveMemoryPass
    : impl::PlanReserveMemoryPassBase<PlanReserveMemoryPass> {
  using PlanReserveMemoryPassBase::PlanReserveMemoryPassBase;

  void runOnOperation() override {
    llvm::StringMap<int64_t> peaks;
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      reserveMemory(program, workspace);
      peaks[program.getSymName()] = getPlannedPeak(program);
    }
    for (auto stage : getOperation().getOps<plan::StageOp>())
      stage.setPeakBytes(peaks.lookup(stage.getProgram()));
  }
};

} // namespace

int64_t getPlannedPeak(plan::ProgramOp program) {
  return program.getArenaBytes().value_or(0) +
         program.getParameterBytes().value_or(0) +
         program.getPackedBytes().value_or(0) +
         program.getWorkspaceBytes().value_or(0);
}

} // namespace partita::pipeline

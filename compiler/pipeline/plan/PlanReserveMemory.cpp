//===- PlanReserveMemory.cpp - What a device holds beside its arena -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/ArenaWalk.h"
#include "compiler/pipeline/plan/DeviceMemory.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_PLANRESERVEMEMORYPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

/// What the memory of states depends on.
struct StateMemory {
  llvm::StringSet<> onHost;        ///< a GPU's states in the host's memory
  llvm::StringMap<int64_t> copies; ///< of those that micro-batches have each
};

/// Walks the instructions of a program.
class MemoryPlanner {
public:
  MemoryPlanner(plan::ProgramOp program, int64_t workspace,
                const StateMemory &memory)
      : backend(codegen::getBackend(program)), perCall(workspace),
        memory(memory) {}

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
        if (std::optional<int64_t> bytes = getPackedBytes(attr, index, slot);
            !bytes || !isParameter(slot))
          readAsItLies(slot);
        else if (packs.insert({slot.getDefiningOp(), attr}).second)
          packed += *bytes;
      }
      for (plan::ViewAttr view : attr.getViewsOfDetails())
        readAsItLies(getSlot(call, view));
      for (plan::PostOpAttr post : attr.getPostOps())
        if (post.getView())
          readAsItLies(getSlot(call, post.getView()));
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
    if (!isHeld || !read.insert(op).second)
      return;
    const int64_t bytes =
        llvm::alignTo(op.getByteSize(), backend.getWeightAlignment());
    if (op.getSpace() != plan::Space::state) {
      parameters += bytes;
      return;
    }
    // The old and the new value of a state have the same bytes.
    if (!readStates.insert(*op.getWeight()).second)
      return;
    if (backend.reachesHost() && memory.onHost.contains(*op.getWeight())) {
      host += op.getByteSize();
      return;
    }
    auto copies = memory.copies.find(*op.getWeight());
    parameters += bytes * (copies == memory.copies.end() ? 1 : copies->second);
    states += op.getByteSize();
  }

  int64_t parameters = 0, packed = 0;
  int64_t states = 0, host = 0; ///< of the device, and of the host
  int64_t workspace = 0;        ///< none without library calls

private:
  static Value getSlot(plan::CallOp call, plan::ViewAttr view) {
    size_t inputs = call.getInputs().size(), index = view.getValue();
    return index < inputs ? call.getInputs()[index]
                          : call.getOutputs()[index - inputs];
  }

  static Type getElementType(Value slot) {
    return cast<plan::SlotType>(slot.getType()).getTensor().getElementType();
  }

  /// Of the library's own copy of an operand; nothing if it makes none.
  std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                        Value slot) const {
    const codegen::CallTuning *tuning = backend.getCallTuning();
    return tuning ? tuning->getPackedBytes(call, operand, getElementType(slot))
                  : std::nullopt;
  }

  static bool isParameter(Value slot) {
    auto op = slot.getDefiningOp<plan::SlotOp>();
    return op && !op.isWritable();
  }

  void visitWorkspace(plan::CallOp call) {
    plan::CallAttr attr = call.getCall();
    bool isPacked = true;
    Type element;
    for (auto [index, view] : llvm::enumerate(attr.getOperands())) {
      Value slot = getSlot(call, view);
      isPacked &= isParameter(slot) || !getPackedBytes(attr, index, slot);
      if (index < 2)
        element = getElementType(slot);
    }
    workspace = std::max(
        workspace, perCall + backend.getScratchBytes(attr, isPacked, element));
  }

  const codegen::Backend &backend;
  const int64_t perCall;
  const StateMemory &memory;
  llvm::DenseSet<Operation *> read;
  llvm::StringSet<> readStates;
  /// The same bytes are reordered once for all calls that are alike. Another
  /// call may want another order, and must get it on whatever device it is.
  llvm::DenseSet<std::pair<Operation *, Attribute>> packs;
};

/// What lies in the memory of a program that learns (plan::kMemoryPartsAttr).
DenseI64ArrayAttr getMemoryParts(plan::ProgramOp program,
                                 const MemoryPlanner &planner) {
  const ArenaWalk walk(program);
  // A byte that two tensors share is the first kind's.
  std::vector<const LiveTensor *> sums, kept, all;
  for (const LiveTensor *tensor : walk.getTensors(walk.findPeak().time)) {
    all.push_back(tensor);
    if (tensor->is_sum)
      sums.push_back(tensor);
    if (tensor->is_sum || tensor->isKept())
      kept.push_back(tensor);
  }
  const int64_t ofSums = ArenaWalk::countBytes(sums),
                ofKept = ArenaWalk::countBytes(kept),
                ofAll = ArenaWalk::countBytes(all);
  return DenseI64ArrayAttr::get(
      program.getContext(),
      {planner.states, planner.host, ofSums, ofKept - ofSums, ofAll - ofKept});
}

/// `workspace`: bytes of scratch for any library call on each core; attention
/// has its scores on top.
void reserveMemory(plan::ProgramOp program, int64_t workspace, bool learns,
                   const StateMemory &memory) {
  MemoryPlanner planner(program, workspace, memory);
  for (Operation &op : program.getBody().front()) {
    if (auto unit = dyn_cast<plan::UnitOp>(op))
      planner.visitUnit(unit.getBody().front());
    else if (auto load = dyn_cast<plan::LoadOp>(op))
      planner.visitLoad(load.getBody().front());
    else if (auto action = dyn_cast<plan::ActionOpInterface>(op))
      if (Value slot = action.getActionSlot())
        planner.readAsItLies(slot);
  }
  program.setParameterBytes(planner.parameters);
  program.setPackedBytes(planner.packed);
  program.setWorkspaceBytes(planner.workspace);
  if (learns)
    program->setAttr(plan::kMemoryPartsAttr, getMemoryParts(program, planner));
}

struct PlanReserveMemoryPass
    : impl::PlanReserveMemoryPassBase<PlanReserveMemoryPass> {
  using PlanReserveMemoryPassBase::PlanReserveMemoryPassBase;

  void runOnOperation() override {
    llvm::StringMap<int64_t> peaks;
    bool learns = false;
    int64_t copies = 1; // of what is carried
    for (auto model : getOperation().getOps<plan::ModelOp>()) {
      learns = model.getEntry() == "train";
      copies = model.getMicroBatches() * model.getSequences();
    }
    StateMemory memory;
    for (auto weight : getOperation().getOps<nn::WeightOp>()) {
      if (weight->hasAttr(nn::kOnHostAttr))
        memory.onHost.insert(weight.getSymName());
      if (weight.isCarried())
        memory.copies[weight.getSymName()] = copies;
    }
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      reserveMemory(program, workspace, learns, memory);
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

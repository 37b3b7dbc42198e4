//===- DeviceMemory.cpp - What a device holds beside its arena ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/DeviceMemory.h"

#include "compiler/codegen/Backend.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita::pipeline {
namespace {

/// Walks the instructions of a device.
class MemoryPlanner {
public:
  explicit MemoryPlanner(int64_t workspace) : perCall(workspace) {}

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
                backend.getPackedBytes(attr, index, getElementType(slot)))
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
    if (op && op.getSpace() != plan::Space::arena && read.insert(op).second)
      parameters += op.getByteSize();
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
    return op && op.getSpace() != plan::Space::arena;
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

  const codegen::Backend &backend = codegen::getBackend();
  const int64_t perCall;
  int64_t workspace = 0; // none without library calls
  llvm::DenseSet<Operation *> read;
  llvm::DenseSet<std::pair<Operation *, Attribute>> packs;
};

} // namespace

void planDeviceMemory(plan::DeviceOp device, int64_t workspace) {
  MemoryPlanner planner(workspace);
  for (Operation &op : device.getBody().front()) {
    if (auto unit = dyn_cast<plan::UnitOp>(op))
      planner.visitUnit(unit.getBody().front());
    else if (auto load = dyn_cast<plan::LoadOp>(op))
      planner.visitLoad(load.getBody().front());
    else if (!isa<plan::SlotOp>(op))
      for (Value slot : op.getOperands())
        planner.readAsItLies(slot);
  }
  device.setParameterBytes(planner.parameters);
  device.setPackedBytes(planner.packed);
  device.setWorkspaceBytes(planner.getWorkspace());
}

int64_t getPlannedPeak(plan::DeviceOp device) {
  return device.getArenaBytes() + device.getParameterBytes().value_or(0) +
         device.getPackedBytes().value_or(0) +
         device.getWorkspaceBytes().value_or(0);
}

} // namespace partita::pipeline

//===- DeviceMemory.cpp - What a device holds beside its arena ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/DeviceMemory.h"

#include "runtime/abi/LibraryMemory.h"

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
      bool packs = attr.getKind() == plan::CallKind::dot ||
                   attr.getKind() == plan::CallKind::conv ||
                   attr.getKind() == plan::CallKind::recurrent;
      for (auto [index, view] : llvm::enumerate(attr.getOperands())) {
        if (packs && index == 1)
          pack(call, view, attr);
        else
          readAsItLies(getSlot(call, view));
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

  static bool isIntegers(Value slot) {
    auto op = slot.getDefiningOp<plan::SlotOp>();
    return op && op.getType().getTensor().getElementType().isInteger(8);
  }

  static bool isParameter(Value slot) {
    auto op = slot.getDefiningOp<plan::SlotOp>();
    return op && op.getSpace() != plan::Space::arena;
  }

  void pack(plan::CallOp call, plan::ViewAttr view, plan::CallAttr attr) {
    Value slot = getSlot(call, view);
    // The same bytes are reordered once for all calls that are alike. Another
    // call may want another order, and must get it on whatever device it is.
    if (!isParameter(slot) ||
        !packs.insert({slot.getDefiningOp(), attr}).second)
      return;
    if (isIntegers(slot))
      packed +=
          attr.getKind() == plan::CallKind::conv
              ? abi::packedIntegerFilterRoom(view.getShape(), attr.getGroups())
              : abi::packedIntegerMatrixRoom(view.getShape());
    else if (attr.getWinograd())
      packed +=
          std::max(abi::winogradFilterRoom(getImages(attr)),
                   abi::packedFilterRoom(view.getShape(), attr.getGroups()));
    else if (attr.getKind() == plan::CallKind::conv)
      packed += abi::packedFilterRoom(view.getShape(), attr.getGroups());
    else if (attr.getKind() == plan::CallKind::recurrent)
      packed += abi::packedRecurrentRoom(
          view.getShape(), attr.getRecurrent().getCell() == plan::Cell::gru &&
                               !attr.getRecurrent().getHiddenBias());
    else
      packed += abi::packedMatrixRoom(view.getShape());
  }

  void visitWorkspace(plan::CallOp call) {
    plan::CallAttr attr = call.getCall();
    int64_t room = 0;
    if (attr.getKind() == plan::CallKind::recurrent) {
      ArrayRef<int64_t> x = attr.getOperands()[0].getShape();
      room =
          abi::recurrentRoom(x[1], attr.getOperands()[1].getShape()[2], x[3]);
    }
    // Weights that are computed are packed in each run.
    if (attr.getKind() == plan::CallKind::conv &&
        !isParameter(getSlot(call, attr.getOperands()[1])))
      room = abi::repackedFilterRoom(attr.getOperands()[1].getShape(),
                                     attr.getGroups());
    if (attr.getKind() == plan::CallKind::attention)
      room = abi::attentionScoreRoom(attr.getOperands()[0].getShape()[2],
                                     attr.getOperands()[1].getShape()[2]);
    if (attr.getWinograd())
      room = abi::winogradRoom(getImages(attr));
    workspace = std::max(workspace, perCall + room);
  }

  static abi::WindowedImages getImages(plan::CallAttr conv) {
    ArrayRef<int64_t> result = conv.getOperands()[2].getShape();
    return {result[0], conv.getOperands()[0].getShape()[1], result[1],
            result[2], result[3]};
  }

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

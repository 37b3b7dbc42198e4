//===- LibraryCall.cpp - Clusters that the library computes whole ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/LibraryCall.h"

#include "compiler/codegen/cpu/onednn/CallRule.h"
#include "runtime/device/cpu/onednn/rules/Fusion.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <limits>

using namespace mlir;

namespace partita::codegen::onednn {

bool isCallRoot(Operation *op) { return getRule(op) != nullptr; }

bool needsLibrary(Operation *op) {
  const CallRule *rule = getRule(op);
  return rule && rule->onlyByLibrary;
}

bool accumulates(Operation *root) {
  const CallRule *rule = getRule(root);
  return rule && rule->accumulates;
}

/// Whether the library is known to compute the post-ops rightly.
static bool computesPostOps(const CallMatcher &call) {
  for (auto [i, postOp] : llvm::enumerate(call.postOps)) {
    auto form = rules::OperandForm::one;
    if (postOp.operand)
      form = rules::getOperandForm(
          call.kind, {call.output.shape, call.output.strides},
          {postOp.operand->shape, postOp.operand->strides});
    if (!rules::mayFuse(call.kind, postOp.kind, form))
      return false;
    for (const PostOp &before : ArrayRef(call.postOps).take_front(i))
      if (!rules::mayFollow(before.kind, postOp.kind))
        return false;
  }
  return true;
}

plan::CallAttr matchLibraryCall(ArrayRef<Operation *> ops,
                                ArrayRef<Value> inputs,
                                ArrayRef<Value> results) {
  static constexpr CallLibrary library = {getRule, computesPostOps};
  return CallMatcher(library, ops, inputs, results).match();
}

/// The library counts rows, columns and positions in 32 bits; a call beyond
/// that would only fail when the artifact is loaded.
LogicalResult checkExtents(nn::ClusterOp cluster) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (Operation &op : cluster.getBody().front().without_terminator()) {
    const CallRule *rule = getRule(&op);
    if (!rule || !rule->counts32)
      continue;
    auto isTooLong = [&](Value value) {
      return llvm::any_of(cast<RankedTensorType>(value.getType()).getShape(),
                          [&](int64_t size) { return size > most; });
    };
    for (Value value : op.getOperands())
      if (isTooLong(value))
        return op.emitError()
               << "a dimension of its operand " << value.getType()
               << " is longer than " << most
               << ", the most that can be computed with: use a smaller batch, "
                  "or split the operand in the model";
  }
  return success();
}

static rules::CallShape getShape(plan::CallAttr call, Type element) {
  rules::CallShape shape;
  shape.kind = call.getKind();
  for (plan::ViewAttr view : call.getOperands())
    shape.operands.push_back(view.getShape());
  shape.integers = element.isInteger(8);
  shape.halves = element.isBF16();
  if (auto conv = call.getDetailsAs<plan::ConvAttr>()) {
    shape.groups = conv.getGroups();
    shape.winograd = conv.getWinograd();
  }
  if (auto layer = call.getDetailsAs<plan::RecurrentAttr>())
    shape.resets_first =
        layer.getCell() == plan::Cell::gru && !layer.getHiddenBias();
  if (auto packed = call.getDetailsAs<plan::PackedDotAttr>())
    shape.bits = packed.getBits();
  return shape;
}

std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                      Type element) {
  if (operand != 1)
    return std::nullopt;
  return rules::packedRoom(getShape(call, element));
}

int64_t getScratchBytes(plan::CallAttr call, bool packed, Type element) {
  return rules::workspaceRoom(getShape(call, element), packed);
}

std::optional<CallWork> getCallWork(ArrayRef<Operation *> ops,
                                    analysis::Rates &rates, int64_t lanes) {
  for (Operation *op : ops)
    if (const CallRule *rule = getRule(op); rule && rule->getWork)
      return rule->getWork(op, rates, lanes);
  return std::nullopt;
}

} // namespace partita::codegen::onednn

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
namespace {

// With fewer channels, or less to do, the direct method is faster.
constexpr int64_t kLeastChannels = 32;
constexpr double kLeastFlops = 1e8;

/// Whether the elements of a value are made integers: sums of integers are
/// exact, but not by Winograd's method.
bool becomesInteger(Value value) {
  SmallVector<Value> same = {value}; // but for their order
  for (size_t i = 0; i < same.size(); ++i)
    for (Operation *user : same[i].getUsers()) {
      auto view = dyn_cast<nn::ViewOpInterface>(user);
      if (view && view.keepsElements())
        same.push_back(user->getResult(0));
      else if (isa<nn::CastOp>(user) && isa<IntegerType>(getElementTypeOrSelf(
                                            user->getResult(0).getType())))
        return true;
    }
  return false;
}

bool suitsWinograd(nn::ConvOp conv) {
  auto isOne = [](int64_t value) { return value == 1; };
  auto weights = cast<RankedTensorType>(conv.getWeights().getType());
  RankedTensorType y = conv.getType();
  if (y.getRank() != 4 || !y.getElementType().isF32() ||
      conv.getGroups() != 1 || weights.getDimSize(2) != 3 ||
      weights.getDimSize(3) != 3 || !llvm::all_of(conv.getStrides(), isOne) ||
      !llvm::all_of(conv.getDilations(), isOne))
    return false;
  const int64_t outputs = weights.getDimSize(0), inputs = weights.getDimSize(1);
  const double flops = 2.0 * 9 * inputs * y.getNumElements();
  return inputs >= kLeastChannels && outputs >= kLeastChannels &&
         flops >= kLeastFlops;
}

/// Whether the library is known to compute the post-ops rightly.
bool computesPostOps(const CallMatcher &call) {
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

rules::CallShape getShape(plan::CallAttr call, Type element) {
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

class OneDnnTuning final : public CallTuning {
public:
  /// Winograd's method, if it is worth while (Lavin and Gray 2016, "Fast
  /// Algorithms for Convolutional Neural Networks"): it needs 2.25 or 4 times
  /// fewer multiplications, but must transform the images and the filter. Only
  /// with weights that are known when loading, and nothing but functions behind
  /// it.
  void chooseMethod(ArrayRef<Operation *> ops,
                    analysis::Rates &rates) const override {
    nn::ConvOp conv;
    for (Operation *op : ops) {
      if (auto found = dyn_cast<nn::ConvOp>(op))
        conv = found;
      else if (llvm::any_of(op->getOperands(), [&](Value operand) {
                 return !llvm::is_contained(ops, operand.getDefiningOp()) &&
                        !rates.isLoad(operand);
               }))
        return;
    }
    if (conv && suitsWinograd(conv) && rates.isLoad(conv.getWeights()) &&
        !becomesInteger(conv.getResult()))
      conv->setAttr(nn::kWinogradAttr, UnitAttr::get(conv.getContext()));
  }

  bool accumulates(Operation *root) const override {
    const CallRule *rule = getRule(root);
    return rule && rule->accumulates;
  }

  /// The library counts rows, columns and positions in 32 bits; a call beyond
  /// that would only fail when the artifact is loaded.
  LogicalResult checkCall(nn::ClusterOp cluster) const override {
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
          return op.emitError() << "a dimension of its operand "
                                << value.getType() << " is longer than " << most
                                << ", the most that can be computed with: use "
                                   "a smaller batch, or split the operand in "
                                   "the model";
    }
    return success();
  }

  std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                        Type element) const override {
    if (operand != 1)
      return std::nullopt;
    return rules::packedRoom(getShape(call, element));
  }

  /// Products, convolutions, pools and attention are measured.
  std::optional<CallWork> getCallWork(ArrayRef<Operation *> ops,
                                      analysis::Rates &rates,
                                      int64_t lanes) const override {
    for (Operation *op : ops)
      if (const CallRule *rule = getRule(op); rule && rule->getWork) {
        CallWork work = rule->getWork(op, rates, lanes);
        work.root = op;
        return work;
      }
    return std::nullopt;
  }
};

} // namespace

bool LibraryBackend::isCallRoot(Operation *op) const {
  return getRule(op) != nullptr;
}

bool LibraryBackend::needsCall(Operation *op) const {
  const CallRule *rule = getRule(op);
  return rule && rule->onlyByLibrary;
}

plan::CallAttr LibraryBackend::matchCall(ArrayRef<Operation *> ops,
                                         ArrayRef<Value> inputs,
                                         ArrayRef<Value> results) const {
  static constexpr CallLibrary library = {getRule, computesPostOps};
  return CallMatcher(library, ops, inputs, results).match();
}

const CallTuning *LibraryBackend::getCallTuning() const {
  static const OneDnnTuning tuning;
  return &tuning;
}

int64_t LibraryBackend::getScratchBytes(plan::CallAttr call, bool packed,
                                        Type element) const {
  return rules::workspaceRoom(getShape(call, element), packed);
}

} // namespace partita::codegen::onednn

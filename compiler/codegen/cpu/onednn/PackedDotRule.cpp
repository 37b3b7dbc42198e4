//===- PackedDotRule.cpp - Products with packed weights, and of experts ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

using namespace mlir;

namespace partita::codegen::onednn {
namespace {

/// The dimensions before the last one as one.
SmallVector<int64_t> rowShape(Value value) {
  RankedTensorType type = nn::getTensorType(value);
  const int64_t last = type.getShape().back();
  return {type.getNumElements() / last, last};
}
StridedView rowsOf(Value value) {
  return *StridedView::dense(value).reshape(rowShape(value));
}
/// The index of each row.
StridedView expertsOf(Value value) {
  return *StridedView::dense(value).reshape(
      {nn::getTensorType(value).getNumElements()});
}

bool matchPackedDot(CallMatcher &call, Operation *root) {
  if (!call.isAlone())
    return false;
  auto dot = cast<nn::PackedDotOp>(root);
  call.kind = plan::CallKind::packed_dot;
  call.operands = {rowsOf(dot.getX()), StridedView::dense(dot.getWeights()),
                   StridedView::dense(dot.getScales())};
  call.output = *call.output.reshape(rowShape(dot));
  std::optional<StridedView> zeros, experts;
  if (dot.getZeros())
    zeros = StridedView::dense(dot.getZeros());
  if (dot.getExperts())
    experts = expertsOf(dot.getExperts());
  call.details =
      plan::PackedDotAttr::get(dot.getContext(), dot.getBits(),
                               call.toAttr(zeros), call.toAttr(experts));
  return true;
}

/// The matrices may be transposed on the way: the call reads them as they lie.
bool matchExpertDot(CallMatcher &call, Operation *root) {
  auto dot = cast<nn::ExpertDotOp>(root);
  if (!call.isAlone()) {
    auto turned = dot.getWeights().getDefiningOp<nn::TransposeOp>();
    if (call.getOpCount() != 2 || !turned ||
        turned.getPermutation() != ArrayRef<int64_t>({0, 2, 1}) ||
        !call.isInput(turned.getX()) || !call.isInput(dot.getX()) ||
        !call.isInput(dot.getExperts()))
      return false;
  }
  std::optional<StridedView> weights = call.operand(dot.getWeights());
  if (!weights)
    return false;
  call.kind = plan::CallKind::expert_dot;
  call.operands = {rowsOf(dot.getX()), *weights, expertsOf(dot.getExperts())};
  call.output = *call.output.reshape(rowShape(dot));
  return true;
}

bool matchExpertOuter(CallMatcher &call, Operation *root) {
  if (!call.isAlone())
    return false;
  auto outer = cast<nn::ExpertOuterOp>(root);
  call.kind = plan::CallKind::expert_outer;
  call.operands = {rowsOf(outer.getDy()), rowsOf(outer.getX()),
                   expertsOf(outer.getExperts())};
  return true;
}

template <typename Op> bool isFloatProduct(Operation *op) {
  auto dot = dyn_cast<Op>(op);
  return dot && dot.getType().getElementType().isF32();
}

} // namespace

const CallRule kPackedDotRule = {.isRoot = isFloatProduct<nn::PackedDotOp>,
                                 .match = matchPackedDot,
                                 .onlyByLibrary = true};

const CallRule kExpertOuterRule = {.isRoot = isFloatProduct<nn::ExpertOuterOp>,
                                   .match = matchExpertOuter,
                                   .onlyByLibrary = true};

const CallRule kExpertDotRule = {.isRoot = isFloatProduct<nn::ExpertDotOp>,
                                 .match = matchExpertDot,
                                 .onlyByLibrary = true};

} // namespace partita::codegen::onednn

//===- OrderedRule.cpp - Ops whose elements have an order -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

using namespace mlir;

namespace partita::codegen::onednn {
namespace {

/// How elements are combined: by a reduction, or the later one replaces.
plan::CombineAttr getCombine(MLIRContext *context,
                             std::optional<nn::ReduceKind> kind) {
  return plan::CombineAttr::get(
      context, kind ? *plan::symbolizeCombine(nn::stringifyReduceKind(*kind))
                    : plan::Combine::replace);
}

/// The sizes before, along and behind a dimension.
SmallVector<int64_t> groupAround(int64_t dim, ArrayRef<int64_t> shape) {
  return {llvm::product_of(shape.take_front(dim)), shape[dim],
          llvm::product_of(shape.drop_front(dim + 1))};
}

/// Takes operands as they lie, and gives the result so.
bool matchOrdered(CallMatcher &call, Operation *root) {
  if (!call.isAlone())
    return false;
  for (Value value : root->getOperands())
    call.operands.push_back(StridedView::dense(value));
  if (auto topK = dyn_cast<nn::TopKOp>(root)) {
    call.kind = plan::CallKind::top_k;
    call.details = plan::TopKAttr::get(root->getContext(), topK.getLargest());
  } else if (auto scan = dyn_cast<nn::ScanOp>(root)) {
    call.kind = plan::CallKind::scan;
    call.details = getCombine(root->getContext(), scan.getKind());
    const SmallVector<int64_t> grouped =
        groupAround(scan.getDim(), scan.getType().getShape());
    call.operands[0] = *call.operands[0].reshape(grouped);
    call.output = *call.output.reshape(grouped);
  } else if (auto update = dyn_cast<nn::UpdateSliceOp>(root)) {
    call.kind = plan::CallKind::update_slice;
    const SmallVector<int64_t> grouped =
        groupAround(update.getDim(), update.getType().getShape());
    call.operands[0] = *call.operands[0].reshape(grouped);
    call.operands[1] = *call.operands[1].reshape(
        groupAround(update.getDim(), update.getUpdate().getType().getShape()));
    call.output = *call.output.reshape(grouped);
  } else {
    call.kind = plan::CallKind::scatter;
    call.details =
        getCombine(root->getContext(), cast<nn::ScatterOp>(root).getCombine());
  }
  return true;
}

bool isOrdered(Operation *op) {
  return isa<nn::TopKOp, nn::ScanOp, nn::ScatterOp, nn::UpdateSliceOp>(op);
}

} // namespace

const CallRule kOrderedRule = {.isRoot = isOrdered,
                               .match = matchOrdered,
                               .onlyByLibrary = true,
                               .counts32 = false};

} // namespace partita::codegen::onednn

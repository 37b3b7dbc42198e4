//===- PackedDotRule.cpp - Products with weights of few bits --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

using namespace mlir;

namespace partita::codegen::onednn {
namespace {

/// Takes operands as they lie, and gives the result so.
bool matchPackedDot(CallMatcher &call, Operation *root) {
  if (call.getOpCount() != 1 ||
      !llvm::all_of(root->getOperands(),
                    [&](Value value) { return call.isInput(value); }))
    return false;
  auto dot = cast<nn::PackedDotOp>(root);
  call.kind = plan::CallKind::packed_dot;
  call.bits = dot.getBits();
  for (Value value : {dot.getX(), dot.getWeights(), dot.getScales()})
    call.operands.push_back(StridedView::dense(value));
  if (dot.getZeros())
    call.zeros = StridedView::dense(dot.getZeros());
  auto rowsOf = [](RankedTensorType type) {
    const int64_t last = type.getShape().back();
    return SmallVector<int64_t>{type.getNumElements() / last, last};
  };
  call.operands[0] = *call.operands[0].reshape(rowsOf(dot.getX().getType()));
  call.output = *call.output.reshape(rowsOf(dot.getType()));
  return true;
}

bool isPackedDot(Operation *op) {
  auto dot = dyn_cast<nn::PackedDotOp>(op);
  return dot && dot.getType().getElementType().isF32();
}

bool takesPackedDot(Operation *, Value) { return true; }

} // namespace

const CallRule kPackedDotRule = {.isRoot = isPackedDot,
                                 .takes = takesPackedDot,
                                 .match = matchPackedDot,
                                 .onlyByLibrary = true};

} // namespace partita::codegen::onednn

//===- AttentionViews.cpp - Attention as a call ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/AttentionViews.h"

using namespace mlir;

namespace partita::codegen {

bool matchAttentionViews(CallMatcher &call, Operation *root) {
  auto attention = cast<nn::AttentionOp>(root);
  call.kind = plan::CallKind::attention;
  if (!call.postOps.empty())
    return false;
  for (Value value : {attention.getQ(), attention.getK(), attention.getV()}) {
    std::optional<StridedView> view = call.operand(value);
    if (!view)
      return false;
    call.operands.push_back(*view);
  }
  SmallVector<int64_t> scores(nn::getTensorType(attention.getQ()).getShape());
  scores[3] = nn::getTensorType(attention.getK()).getDimSize(2);
  auto mask = [&](Value value, std::optional<StridedView> &to) {
    if (!value)
      return true;
    to = call.operand(value);
    if (!to)
      return false;
    for (size_t dim = 0; dim < 4; ++dim)
      if (to->shape[dim] != scores[dim])
        to->strides[dim] = 0;
    to->shape = scores;
    return true;
  };
  call.scale = attention.getScale().convertToDouble();
  return mask(attention.getMaskMul(), call.maskMul) &&
         mask(attention.getMaskAdd(), call.maskAdd);
}

} // namespace partita::codegen

//===- AttentionRule.cpp - Attention by calls of the library --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

#include "runtime/abi/machine.h"

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::codegen::onednn {
namespace {

bool matchAttention(CallMatcher &call, Operation *root) {
  auto attention = cast<nn::AttentionOp>(root);
  call.kind = plan::CallKind::attention;
  if (!call.steps.empty())
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

CallWork getAttentionWork(Operation *root, analysis::Rates &, int64_t) {
  auto op = cast<nn::AttentionOp>(root);
  CallWork work;
  work.root = root;
  RankedTensorType q = nn::getTensorType(op.getQ()),
                   v = nn::getTensorType(op.getV());
  work.table = key::kAttention;
  work.point = {double(q.getDimSize(2)), double(v.getDimSize(2)),
                (q.getDimSize(3) + v.getDimSize(3)) / 2.0};
  work.operations = op.getCost().flops;
  // Threads take heads in turns.
  work.parts = q.getDimSize(0) * q.getDimSize(1);
  return work;
}

bool isAttention(Operation *op) { return isa<nn::AttentionOp>(op); }

bool takesAttention(Operation *, Value value) { return isF32(value); }

} // namespace

const CallRule kAttentionRule = {isAttention, takesAttention, matchAttention,
                                 getAttentionWork};

} // namespace partita::codegen::onednn

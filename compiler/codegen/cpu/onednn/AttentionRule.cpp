//===- AttentionRule.cpp - Attention by calls of the library --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/CallViews.h"
#include "compiler/codegen/cpu/onednn/CallRule.h"

#include "runtime/abi/machine.h"

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::codegen::onednn {
namespace {

CallWork getAttentionWork(Operation *root, analysis::Rates &, int64_t) {
  auto op = cast<nn::AttentionOp>(root);
  CallWork work;
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

} // namespace

const CallRule kAttentionRule = {isAttention, takesF32, matchAttentionViews,
                                 getAttentionWork};

} // namespace partita::codegen::onednn

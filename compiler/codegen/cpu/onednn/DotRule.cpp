//===- DotRule.cpp - Matrix products by the library -----------------------===//
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

CallWork getDotWork(Operation *root, analysis::Rates &rates, int64_t lanes) {
  auto dot = cast<nn::DotOp>(root);
  CallWork work;
  work.ofIntegers = nn::multipliesIntegers(root);
  RankedTensorType lhs = nn::getTensorType(dot.getLhs()),
                   rhs = nn::getTensorType(dot.getRhs());
  double batch = 1, depth = 1;
  for (int64_t dim : dot.getLhsBatch())
    batch *= lhs.getDimSize(dim);
  for (int64_t dim : dot.getLhsContract())
    depth *= lhs.getDimSize(dim);
  double rows = lhs.getNumElements() / std::max(batch * depth, 1.0);
  double columns = rhs.getNumElements() / std::max(batch * depth, 1.0);
  double padded = roundToLanes(columns, lanes);
  const bool packed = rates.isLoad(dot.getRhs());
  work.table = packed ? key::kDot : key::kDotPlain;
  work.point = {rows, padded, depth};
  work.operations = batch * 2 * rows * padded * depth;
  work.weightRows = rows;
  work.weightBytes = packed ? nn::getByteSize(rhs) : 0;
  return work;
}

bool isDot(Operation *op) { return isa<nn::DotOp>(op); }

bool isBF16(Value value) {
  return nn::getTensorType(value).getElementType().isBF16();
}

bool takesDot(Operation *root, Value value) {
  return nn::multipliesIntegers(root) || isF32(value) || isBF16(value);
}

bool matchDot(CallMatcher &call, Operation *root) {
  if (!matchDotViews(call, root))
    return false;
  // Nothing but the product: the library rounds before post-ops, or after them.
  if (isBF16(root->getResult(0)) && !call.postOps.empty())
    return false;
  takeSum(call);
  return true;
}

} // namespace

const CallRule kDotRule = {isDot, takesDot, matchDot, getDotWork};

} // namespace partita::codegen::onednn

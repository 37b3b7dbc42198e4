//===- PoolRule.cpp - Pooling by the library ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/CallViews.h"
#include "compiler/codegen/cpu/onednn/CallRule.h"

#include "runtime/abi/machine.h"

#include <cmath>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::codegen::onednn {
namespace {

bool matchPool(CallMatcher &call, Operation *root) {
  // With channels outside the library goes from element to element.
  constexpr int64_t kMostLooped = 25;
  if (!hasChannelsLast(root) &&
      llvm::product_of(cast<nn::WindowReduceOp>(root).getWindow()) <=
          kMostLooped)
    return false;
  if (!isDense(call.output) || !matchPoolViews(call, root))
    return false;
  // In the order of its own dimensions.
  const bool last = hasChannelsLast(root);
  SmallVector<int64_t> back =
      llvm::to_vector(llvm::seq<int64_t>(0, call.operands[0].shape.size()));
  if (last)
    std::rotate(back.begin() + 1, back.begin() + 2, back.end());
  return isDense(call.operands[0].permute(back));
}

CallWork getPoolWork(Operation *root, analysis::Rates &, int64_t lanes) {
  auto op = cast<nn::WindowReduceOp>(root);
  CallWork work;
  RankedTensorType y = nn::getTensorType(op.getResult());
  const int64_t rank = y.getRank();
  double taps = llvm::product_of(op.getWindow(), 1.0);
  const bool last = op.getWindow()[rank - 1] == 1;
  double channels = y.getDimSize(last ? rank - 1 : 1);
  double pixels = y.getNumElements() / std::max(channels, 1.0);
  double padded = roundToLanes(channels, lanes);
  double side = std::sqrt(pixels / std::max<double>(y.getDimSize(0), 1));
  work.table = key::kPool;
  work.point = {taps, padded, side};
  work.operations = taps * padded * pixels;
  return work;
}

bool isPool(Operation *op) { return isa<nn::WindowReduceOp>(op); }

} // namespace

const CallRule kPoolRule = {isPool, takesF32, matchPool, getPoolWork};

} // namespace partita::codegen::onednn

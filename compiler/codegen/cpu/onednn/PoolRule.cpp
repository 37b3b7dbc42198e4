//===- PoolRule.cpp - Pooling by the library ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

#include "runtime/abi/machine.h"

#include <cmath>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::codegen::onednn {
namespace {

bool matchPool(CallMatcher &call, Operation *root) {
  auto window = cast<nn::WindowReduceOp>(root);
  int64_t rank = nn::getTensorType(window.getX()).getRank();
  if (rank < 3 || rank > 5)
    return false;
  auto isPlain = [&](int64_t dim) {
    return window.getWindow()[dim] == 1 && window.getStrides()[dim] == 1 &&
           window.getPadsLow()[dim] == 0 && window.getPadsHigh()[dim] == 0;
  };
  bool last = !isPlain(1) && isPlain(rank - 1);
  if (!isPlain(0) || !(last || isPlain(1)))
    return false;
  // With channels outside the library goes from element to element.
  constexpr int64_t kMostLooped = 25;
  if (!last && llvm::product_of(window.getWindow()) <= kMostLooped)
    return false;
  SmallVector<int64_t> order = getChannelsFirst(rank, last);
  int64_t elements = 1;
  for (int64_t dim : ArrayRef(order).drop_front(2)) {
    if (window.getDilations()[dim] != 1 ||
        window.getPadsLow()[dim] >= window.getWindow()[dim] ||
        window.getPadsHigh()[dim] >= window.getWindow()[dim])
      return false;
    call.window.push_back(window.getWindow()[dim]);
    elements *= window.getWindow()[dim];
    call.strides.push_back(window.getStrides()[dim]);
    call.dilations.push_back(1);
    call.padsLow.push_back(window.getPadsLow()[dim]);
    call.padsHigh.push_back(window.getPadsHigh()[dim]);
  }
  if (window.getKind() == nn::ReduceKind::max) {
    call.kind = plan::CallKind::pool_max;
    if (!call.steps.empty())
      return false;
  } else if (window.getKind() == nn::ReduceKind::sum) {
    // The sum divided by the number of elements, border included.
    call.kind = plan::CallKind::pool_avg;
    if (call.steps.size() != 1 ||
        call.steps[0].kind != plan::PostOpKind::linear ||
        call.steps[0].beta != 0 ||
        std::abs(call.steps[0].alpha * elements - 1) > 1e-6)
      return false;
    call.steps.clear();
    call.includePad = true;
  } else {
    return false;
  }
  std::optional<StridedView> x = call.operand(window.getX());
  if (!x || !isDense(*x) || !isDense(call.output))
    return false;
  call.permuteOutput(order);
  call.operands = {x->permute(order)};
  return true;
}

CallWork getPoolWork(Operation *root, analysis::Rates &, int64_t lanes) {
  auto op = cast<nn::WindowReduceOp>(root);
  CallWork work;
  work.root = root;
  RankedTensorType y = nn::getTensorType(op.getResult());
  const int64_t rank = y.getRank();
  double taps = product(op.getWindow());
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

bool takesPool(Operation *, Value value) { return isF32(value); }

} // namespace

const CallRule kPoolRule = {isPool, takesPool, matchPool, getPoolWork};

} // namespace partita::codegen::onednn

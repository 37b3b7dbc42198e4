//===- PoolViews.cpp - Pools as images with windows -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/PoolViews.h"

#include <cmath>

using namespace mlir;

namespace partita::codegen {

SmallVector<int64_t> getChannelsFirst(int64_t rank, bool last) {
  SmallVector<int64_t> order{0};
  if (last)
    order.push_back(rank - 1);
  for (int64_t dim = 1; dim < (last ? rank - 1 : rank); ++dim)
    order.push_back(dim);
  return order;
}

/// Whether the dimension passes through.
static bool isPlain(nn::WindowReduceOp window, int64_t dim) {
  return window.getWindow()[dim] == 1 && window.getStrides()[dim] == 1 &&
         window.getPadsLow()[dim] == 0 && window.getPadsHigh()[dim] == 0;
}

bool hasChannelsLast(Operation *pool) {
  auto window = cast<nn::WindowReduceOp>(pool);
  const int64_t rank = nn::getTensorType(window.getX()).getRank();
  return rank > 2 && !isPlain(window, 1) && isPlain(window, rank - 1);
}

bool matchPoolViews(CallMatcher &call, Operation *root) {
  auto window = cast<nn::WindowReduceOp>(root);
  const int64_t rank = nn::getTensorType(window.getX()).getRank();
  if (rank < 3 || rank > 5)
    return false;
  const bool last = hasChannelsLast(root);
  if (!isPlain(window, 0) || !(last || isPlain(window, 1)))
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
  if (!x)
    return false;
  call.permuteOutput(order);
  call.operands = {x->permute(order)};
  return true;
}

} // namespace partita::codegen

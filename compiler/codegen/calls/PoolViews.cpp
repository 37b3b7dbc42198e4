//===- PoolViews.cpp - Pools as images with windows -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/CallViews.h"

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

/// Whether the post-op divides each window's sum by the number of its elements
/// that are no border. `order`: the dimensions of the image as [N, C,
/// spatial..] in those of the post-op's operand.
static bool dividesByElements(const CallMatcher &call, const PostOp &postOp,
                              nn::WindowReduceOp window,
                              ArrayRef<int64_t> order) {
  if (postOp.kind != plan::PostOpKind::div || !postOp.operand)
    return false;
  auto constant = postOp.operand->base.getDefiningOp<nn::ConstantOp>();
  if (!constant || call.isInput(constant))
    return false;
  auto dense = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  if (!dense)
    return false;
  const StridedView view = postOp.operand->permute(order);
  ArrayRef<int64_t> sizes = nn::getTensorType(window.getX()).getShape();
  // How many elements windows have along each dimension.
  SmallVector<SmallVector<int64_t>> counts;
  for (auto [i, dim] : llvm::enumerate(order)) {
    counts.emplace_back();
    for (int64_t place = 0; place < view.shape[i]; ++place) {
      const int64_t begin =
          place * window.getStrides()[dim] - window.getPadsLow()[dim];
      counts[i].push_back(
          std::min(begin + window.getWindow()[dim], sizes[dim]) -
          std::max<int64_t>(begin, 0));
    }
  }
  // Each element of the constant that is read, once.
  auto values = dense.getValues<APFloat>();
  auto agrees = [&](auto &self, size_t dim, int64_t offset,
                    int64_t wanted) -> bool {
    if (dim == order.size())
      return values[size_t(offset)].convertToDouble() == double(wanted);
    // Where the constant does not change, neither may the number.
    const int64_t stride = view.strides[dim];
    if (stride == 0 && !llvm::all_equal(counts[dim]))
      return false;
    const size_t places = stride == 0 ? 1 : counts[dim].size();
    for (size_t place = 0; place < places; ++place)
      if (!self(self, dim + 1, offset + int64_t(place) * stride,
                wanted * counts[dim][place]))
        return false;
    return true;
  };
  return agrees(agrees, 0, view.offset, 1);
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
  SmallVector<int64_t> sizes, strides, padsLow, padsHigh;
  for (int64_t dim : ArrayRef(order).drop_front(2)) {
    if (window.getDilations()[dim] != 1 ||
        window.getPadsLow()[dim] >= window.getWindow()[dim] ||
        window.getPadsHigh()[dim] >= window.getWindow()[dim])
      return false;
    sizes.push_back(window.getWindow()[dim]);
    strides.push_back(window.getStrides()[dim]);
    padsLow.push_back(window.getPadsLow()[dim]);
    padsHigh.push_back(window.getPadsHigh()[dim]);
  }
  bool includePad = false;
  if (window.getKind() == nn::ReduceKind::max) {
    call.kind = plan::CallKind::pool_max;
    if (!call.postOps.empty())
      return false;
  } else if (window.getKind() == nn::ReduceKind::sum) {
    // The sum divided by the number of elements, with or without the border.
    call.kind = plan::CallKind::pool_avg;
    if (call.postOps.size() != 1)
      return false;
    const PostOp &postOp = call.postOps[0];
    includePad = postOp.kind == plan::PostOpKind::linear && postOp.beta == 0 &&
                 std::abs(postOp.alpha * llvm::product_of(sizes) - 1) <= 1e-6;
    if (!includePad && !dividesByElements(call, postOp, window, order))
      return false;
    call.postOps.clear();
  } else {
    return false;
  }
  std::optional<StridedView> x = call.operand(window.getX());
  if (!x)
    return false;
  call.permuteOutput(order);
  call.operands = {x->permute(order)};
  call.details = plan::PoolAttr::get(window.getContext(), strides,
                                     SmallVector<int64_t>(sizes.size(), 1),
                                     padsLow, padsHigh, sizes, includePad);
  return true;
}

} // namespace partita::codegen

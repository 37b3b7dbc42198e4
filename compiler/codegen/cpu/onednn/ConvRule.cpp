//===- ConvRule.cpp - Convolutions by the library -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/PoolViews.h"
#include "compiler/codegen/cpu/onednn/CallRule.h"

#include "runtime/abi/machine.h"

#include <cmath>

using namespace mlir;
namespace key = partita::abi::machine;

namespace partita::codegen::onednn {
namespace {

/// Whether an element stands for several: the library takes no such filter.
bool repeats(const StridedView &view) {
  for (auto [size, stride] : llvm::zip(view.shape, view.strides))
    if (stride == 0 && size > 1)
      return true;
  return false;
}

/// Whether the library is as fast, or faster, where the planes of the image
/// lie one after another: a few of them, and a result whose channels are one
/// vector, which it can write with the channels innermost.
bool readsPlanes(nn::ConvOp conv) {
  constexpr int64_t kMostPlanes = 3, kVector = 16;
  RankedTensorType weights = nn::getTensorType(conv.getWeights());
  return conv.getLayout() == nn::ImageLayout::channels_last &&
         conv.getGroups() == 1 && weights.getRank() == 4 &&
         weights.getElementType().isF32() && weights.getDimSize(0) == kVector &&
         weights.getDimSize(1) <= kMostPlanes;
}

/// A first addition of one number a channel is the bias, of floats.
void takeBias(CallMatcher &call, nn::ConvOp conv) {
  if (nn::multipliesIntegers(conv) || call.postOps.empty() ||
      call.postOps[0].kind != plan::PostOpKind::add || !call.postOps[0].operand)
    return;
  const StridedView &view = *call.postOps[0].operand;
  for (auto [dim, stride] : llvm::enumerate(view.strides))
    if (dim != 1 && view.shape[dim] != 1 && stride != 0)
      return;
  if (view.strides[1] == 0 && view.shape[1] != 1)
    return;
  call.bias =
      StridedView(view.base, {{view.shape[1]}, {view.strides[1]}, view.offset});
  call.postOps.erase(call.postOps.begin());
}

bool matchConv(CallMatcher &call, Operation *root) {
  auto conv = cast<nn::ConvOp>(root);
  call.kind = plan::CallKind::conv;
  int64_t rank = conv.getType().getRank();
  std::optional<StridedView> x = call.operand(conv.getX()),
                             weights = call.operand(conv.getWeights());
  if (!x || !weights || rank > 5 || !isDense(call.output) || repeats(*weights))
    return false;
  SmallVector<int64_t> order = getChannelsFirst(
      rank, conv.getLayout() == nn::ImageLayout::channels_last);
  if (!isDense(*x) && !(readsPlanes(conv) && isDense(x->permute(order))))
    return false;
  call.permuteOutput(order);
  call.operands = {x->permute(order), *weights};
  llvm::append_range(call.strides, conv.getStrides());
  llvm::append_range(call.dilations, conv.getDilations());
  llvm::append_range(call.padsLow, conv.getPadsLow());
  llvm::append_range(call.padsHigh, conv.getPadsHigh());
  call.groups = conv.getGroups();
  takeBias(call, conv);
  takeSum(call);
  call.winograd = conv->hasAttr(nn::kWinogradAttr) &&
                  llvm::none_of(call.postOps, [](const PostOp &postOp) {
                    return postOp.operand.has_value();
                  });
  return true;
}

CallWork getConvWork(Operation *root, analysis::Rates &, int64_t lanes) {
  auto conv = cast<nn::ConvOp>(root);
  CallWork work;
  work.root = root;
  work.ofIntegers = nn::multipliesIntegers(root);
  RankedTensorType weights = nn::getTensorType(conv.getWeights()),
                   y = conv.getType();
  double groups = conv.getGroups();
  double out = weights.getDimSize(0), in = weights.getDimSize(1);
  double taps = product(weights.getShape().drop_front(2));
  double pixels = y.getNumElements() / std::max(out, 1.0);
  double images = std::max<double>(y.getDimSize(0), 1);
  double side = std::sqrt(pixels / images);
  double stride =
      std::pow(product(conv.getStrides()), 1.0 / conv.getStrides().size());
  if (in == 1 && groups > 1 && groups == out) {
    double padded = roundToLanes(out, lanes);
    work.table = key::kDepthwise;
    work.point = {taps, stride, padded, side};
    work.operations = 2 * taps * padded * pixels;
    work.ofIntegers = false; // they are no faster
    return work;
  }
  double padded = roundToLanes(out / groups, lanes);
  work.weightRows = pixels;
  work.weightBytes = nn::getByteSize(weights);
  if (conv->hasAttr(nn::kWinogradAttr)) {
    work.table = key::kWinograd;
    work.point = {in, padded, side};
    work.operations = 2 * taps * in * padded * pixels;
    // The filter is as many times larger as there are elements of a tile to
    // those of a window.
    work.weightBytes = 16 / taps * work.weightBytes;
    return work;
  }
  work.table = key::kConv;
  work.point = {taps, stride, in, padded, side};
  work.operations = groups * 2 * taps * in * padded * pixels;
  return work;
}

bool isConv(Operation *op) { return isa<nn::ConvOp>(op); }

bool takesConv(Operation *root, Value value) {
  return nn::multipliesIntegers(root) || isF32(value);
}

} // namespace

const CallRule kConvRule = {.isRoot = isConv,
                            .takes = takesConv,
                            .match = matchConv,
                            .getWork = getConvWork,
                            .accumulates = true};

} // namespace partita::codegen::onednn

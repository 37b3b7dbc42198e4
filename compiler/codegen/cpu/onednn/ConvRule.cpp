//===- ConvRule.cpp - Convolutions and their derivatives, by the library --===//
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

bool isDepthwise(RankedTensorType weights, int64_t groups) {
  return groups > 1 && weights.getDimSize(0) == groups &&
         weights.getDimSize(1) == 1;
}

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
plan::ViewAttr takeBias(CallMatcher &call, nn::ConvOp conv) {
  if (nn::multipliesIntegers(conv) || call.postOps.empty() ||
      call.postOps[0].kind != plan::PostOpKind::add || !call.postOps[0].operand)
    return {};
  const StridedView &view = *call.postOps[0].operand;
  if (!call.isInput(view.base))
    return {};
  for (auto [dim, stride] : llvm::enumerate(view.strides))
    if (dim != 1 && view.shape[dim] != 1 && stride != 0)
      return {};
  if (view.strides[1] == 0 && view.shape[1] != 1)
    return {};
  plan::ViewAttr bias = call.toAttr(StridedView(
      view.base, {{view.shape[1]}, {view.strides[1]}, view.offset}));
  call.postOps.erase(call.postOps.begin());
  return bias;
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
  plan::ViewAttr bias = takeBias(call, conv);
  takeSum(call);
  const bool winograd = conv->hasAttr(nn::kWinogradAttr) &&
                        llvm::none_of(call.postOps, [](const PostOp &postOp) {
                          return postOp.operand.has_value();
                        });
  call.details = describeConv(conv, winograd, bias);
  return true;
}

/// Whether the library has code for images with channels innermost that copies
/// no window's elements, on processors with AVX-512 and without. What this is
/// about was found by asking it for some ten thousand convolutions.
template <typename Op>
bool hasFastCode(Op op, RankedTensorType x, RankedTensorType weights) {
  constexpr int64_t kVector = 8, kMostTaps = 7, kMostStride = 2;
  const int64_t groups = op.getGroups();
  if (weights.getRank() > 4 ||
      !(groups == 1 || isDepthwise(weights, groups) ||
        (weights.getDimSize(1) % kVector == 0 &&
         weights.getDimSize(0) / groups % kVector == 0)))
    return false;
  for (auto [i, stride] : llvm::enumerate(op.getStrides())) {
    const int64_t taps = weights.getDimSize(2 + i);
    if (stride > kMostStride || op.getDilations()[i] != 1 || taps > kMostTaps ||
        2 * op.getPadsLow()[i] >= taps + 1 ||
        2 * op.getPadsHigh()[i] >= taps + 1 ||
        x.getDimSize(op.getFirstSpatialDim() + i) < taps)
      return false;
  }
  return true;
}

bool isDx(Operation *op) {
  constexpr int64_t kVector = 16, kMostTaps = 5;
  auto conv = dyn_cast<nn::ConvDxOp>(op);
  if (!conv)
    return false;
  RankedTensorType weights = conv.getWeights().getType();
  if (!hasFastCode(conv, conv.getType(), weights))
    return false;
  const bool hasStrides = llvm::any_of(
      conv.getStrides(), [](int64_t stride) { return stride > 1; });
  return !hasStrides ||
         ((weights.getDimSize(1) % kVector == 0 ||
           isDepthwise(weights, conv.getGroups())) &&
          llvm::all_of(weights.getShape().drop_front(2),
                       [](int64_t k) { return k <= kMostTaps; }));
}

bool isDw(Operation *op) {
  constexpr int64_t kMostRows = 5, kMostColumns = 3;
  auto conv = dyn_cast<nn::ConvDwOp>(op);
  if (!conv || !hasFastCode(conv, conv.getX().getType(), conv.getType()))
    return false;
  if (!isDepthwise(conv.getType(), conv.getGroups()))
    return true;
  ArrayRef<int64_t> window = conv.getType().getShape().drop_front(2);
  return window.front() <= kMostRows && window.back() <= kMostColumns &&
         llvm::all_of(llvm::zip(window, conv.getStrides()), [](auto each) {
           return std::get<1>(each) <= std::get<0>(each);
         });
}

/// The order of an image's dimensions that has the channels second.
SmallVector<int64_t> getOrder(const StridedView &image) {
  return getChannelsFirst(image.shape.size(), /*last=*/true);
}

/// Takes two operands of a derivative, with nothing behind it. Images have
/// their channels last. The first operand, an image, becomes [N, C, spatial..];
/// the callers turn the other one.
template <typename Op>
bool matchDerivative(CallMatcher &call, Op conv, Value first, Value second) {
  std::optional<StridedView> left = call.operand(first),
                             right = call.operand(second);
  if (conv.getLayout() != nn::ImageLayout::channels_last || !left || !right ||
      !isDense(call.output) || !isDense(*left) || !isDense(*right) ||
      !call.postOps.empty())
    return false;
  call.operands = {left->permute(getOrder(*left)), *right};
  call.details = describeConv(conv);
  return true;
}

bool matchDx(CallMatcher &call, Operation *root) {
  auto conv = cast<nn::ConvDxOp>(root);
  call.kind = plan::CallKind::conv_dx;
  if (!matchDerivative(call, conv, conv.getDy(), conv.getWeights()))
    return false;
  call.permuteOutput(getOrder(call.output));
  return true;
}

bool matchDw(CallMatcher &call, Operation *root) {
  auto conv = cast<nn::ConvDwOp>(root);
  call.kind = plan::CallKind::conv_dw;
  if (!matchDerivative(call, conv, conv.getX(), conv.getDy()))
    return false;
  call.operands[1] = call.operands[1].permute(getOrder(call.operands[1]));
  return true;
}

double countPixels(RankedTensorType y, RankedTensorType weights) {
  return y.getNumElements() / std::max<double>(weights.getDimSize(0), 1);
}

/// Of a convolution, or of a derivative of one: that is as much to do, and
/// about as fast.
CallWork getWork(ArrayRef<int64_t> strides, RankedTensorType weights,
                 RankedTensorType y, int64_t groups, int64_t lanes) {
  CallWork work;
  const double out = weights.getDimSize(0), in = weights.getDimSize(1),
               taps = llvm::product_of(weights.getShape().drop_front(2), 1.0),
               pixels = countPixels(y, weights),
               images = std::max<double>(y.getDimSize(0), 1),
               side = std::sqrt(pixels / images),
               stride = std::pow(llvm::product_of(strides, 1.0),
                                 1.0 / strides.size());
  const bool depthwise = isDepthwise(weights, groups);
  const double padded =
      roundToLanes(depthwise ? out : out / static_cast<double>(groups), lanes);
  if (depthwise) {
    work.table = key::kDepthwise;
    work.point = {taps, stride, padded, side};
    work.operations = 2 * taps * padded * pixels;
  } else {
    work.table = key::kConv;
    work.point = {taps, stride, in, padded, side};
    work.operations =
        static_cast<double>(groups) * 2 * taps * in * padded * pixels;
  }
  return work;
}

CallWork getConvWork(Operation *root, analysis::Rates &, int64_t lanes) {
  auto conv = cast<nn::ConvOp>(root);
  RankedTensorType weights = nn::getTensorType(conv.getWeights()),
                   y = conv.getType();
  CallWork work =
      getWork(conv.getStrides(), weights, y, conv.getGroups(), lanes);
  // Integers are no faster.
  if (isDepthwise(weights, conv.getGroups()))
    return work;
  work.ofIntegers = nn::multipliesIntegers(root);
  work.weightRows = countPixels(y, weights);
  work.weightBytes = nn::getByteSize(weights);
  if (conv->hasAttr(nn::kWinogradAttr)) {
    // The filter is as many times larger as there are elements of a tile to
    // those of a window.
    const double taps = work.point.front();
    work.weightBytes = 16 / taps * work.weightBytes;
    work.table = key::kWinograd;
    // Not the taps, nor the stride.
    work.point.erase(work.point.begin(), work.point.begin() + 2);
  }
  return work;
}

CallWork getDxWork(Operation *root, analysis::Rates &, int64_t lanes) {
  auto conv = cast<nn::ConvDxOp>(root);
  return getWork(conv.getStrides(), conv.getWeights().getType(),
                 conv.getDy().getType(), conv.getGroups(), lanes);
}

CallWork getDwWork(Operation *root, analysis::Rates &, int64_t lanes) {
  auto conv = cast<nn::ConvDwOp>(root);
  return getWork(conv.getStrides(), conv.getType(), conv.getDy().getType(),
                 conv.getGroups(), lanes);
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
const CallRule kConvDxRule = {isDx, takesF32, matchDx, getDxWork};
const CallRule kConvDwRule = {isDw, takesF32, matchDw, getDwWork};

} // namespace partita::codegen::onednn

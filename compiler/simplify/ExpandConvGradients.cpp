//===- ExpandConvGradients.cpp - Derivatives as convolutions --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivatives of a convolution are convolutions, too:
//
//   to the image     the cotangent, its elements a stride apart, under the
//                    reversed window (a transposed convolution)
//   to the weights   the image under a window that is the whole cotangent; the
//                    batch takes the place of the channels
//
// Where each channel has windows of its own, the latter is the sum of the
// products of the cotangent and the image, moved by one pixel after another.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/grad/Term.h"

using namespace mlir;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

namespace partita::simplify {

#define GEN_PASS_DEF_EXPANDCONVGRADIENTSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {
/// A convolution, of which `op` is a derivative.
template <typename Op> struct Convolution {
  Op op;
  RankedTensorType x, weights, y;
  int64_t rank, channelDim, spatialDim, groups;

  Convolution(Op op, RankedTensorType x, RankedTensorType weights,
              RankedTensorType y)
      : op(op), x(x), weights(weights), y(y), rank(x.getRank()),
        channelDim(op.getChannelDim()), spatialDim(op.getFirstSpatialDim()),
        groups(op.getGroups()) {}

  int64_t numSpatial() { return rank - 2; }
  int64_t imageSize(int64_t i) { return x.getDimSize(spatialDim + i); }
  int64_t resultSize(int64_t i) { return y.getDimSize(spatialDim + i); }
  /// How far a window reaches beyond its first pixel.
  int64_t reach(int64_t i) {
    return (weights.getDimSize(2 + i) - 1) * op.getDilations()[i];
  }
  /// How far the last window reaches beyond the image.
  int64_t borderAbove(int64_t i) {
    return (resultSize(i) - 1) * op.getStrides()[i] + 1 + reach(i) -
           op.getPadsLow()[i] - imageSize(i);
  }

  /// A convolution whose borders may be negative. `sizes`: those of its result,
  /// of which `channels` are the channels.
  Term convolve(Term x, Term weights, ArrayRef<int64_t> strides,
                ArrayRef<int64_t> dilations, Shape low, Shape high,
                int64_t channels) {
    Shape crop(rank, 0), cropHigh(rank, 0), pad(rank, 0), padHigh(rank, 0),
        shape(x.shape());
    for (int64_t i = 0; i < numSpatial(); ++i) {
      const int64_t dim = spatialDim + i,
                    reached = (weights.shape()[2 + i] - 1) * dilations[i];
      shape[dim] =
          (low[i] + x.shape()[dim] + high[i] - reached - 1) / strides[i] + 1;
      crop[dim] = std::min<int64_t>(low[i], 0);
      cropHigh[dim] = std::min<int64_t>(high[i], 0);
      // More is cropped than there is: what remains is a part of the other
      // border.
      if (-crop[dim] - cropHigh[dim] > x.shape()[dim]) {
        pad[dim] = std::max<int64_t>(low[i], 0);
        padHigh[dim] = std::max<int64_t>(high[i], 0);
        low[i] = high[i] = 0;
      }
      low[i] = std::max<int64_t>(low[i], 0);
      high[i] = std::max<int64_t>(high[i], 0);
    }
    shape[channelDim] = channels;
    return x.make<nn::ConvOp>(
        RankedTensorType::get(shape, x.element()),
        x.padOrCrop(pad, padHigh).padOrCrop(crop, cropHigh).get(),
        weights.get(), op.getLayout(), strides, dilations, low, high, groups);
  }

  Term differentiateImage(Term dy, Term weights) {
    // Inputs and outputs of each group change places: [G, O/G, C/G, window..].
    ArrayRef<int64_t> from = weights.shape();
    Shape grouped = {groups, from[0] / groups, from[1]}, order = {0, 2, 1},
          turned = {groups * from[1], from[0] / groups}, windows, low, high,
          strides(rank, 1);
    for (int64_t i = 0; i < numSpatial(); ++i) {
      grouped.push_back(from[2 + i]);
      order.push_back(3 + i);
      turned.push_back(from[2 + i]);
      windows.push_back(2 + i);
      strides[spatialDim + i] = op.getStrides()[i];
      low.push_back(reach(i) - op.getPadsLow()[i]);
      high.push_back(imageSize(i) + op.getPadsLow()[i] -
                     ((resultSize(i) - 1) * op.getStrides()[i] + 1));
    }
    Term turnedWeights =
        weights.reshape(grouped).transpose(order).reshape(turned).reverse(
            windows);
    return convolve(dy.spread(strides), turnedWeights, Shape(numSpatial(), 1),
                    op.getDilations(), low, high, turned[0]);
  }

  Term differentiateWeights(Term dy, Term x) {
    const int64_t inputs = x.shape()[channelDim] / groups, batch = x.shape()[0];
    // The image: [C/G, (spatial..), G * N], the channels where they were.
    Shape split, order, image, kernelOrder = {channelDim, 0}, low, high,
                               back = {channelDim, 0};
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (dim == channelDim)
        split.push_back(groups);
      split.push_back(dim == channelDim ? inputs : x.shape()[dim]);
    }
    auto splitDim = [&](int64_t dim) { return dim + (dim > channelDim); };
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (dim == 0)
        order.push_back(channelDim + 1);
      else if (dim == channelDim)
        order.append({channelDim, 0});
      else
        order.push_back(splitDim(dim));
      image.push_back(dim == 0            ? inputs
                      : dim == channelDim ? groups * batch
                                          : x.shape()[dim]);
    }
    for (int64_t i = 0; i < numSpatial(); ++i) {
      kernelOrder.push_back(spatialDim + i);
      back.push_back(spatialDim + i);
      low.push_back(op.getPadsLow()[i]);
      high.push_back(borderAbove(i));
    }
    Term turned = x.reshape(split).transpose(order).reshape(image);
    return convolve(turned, dy.transpose(kernelOrder), op.getDilations(),
                    op.getStrides(), low, high, dy.shape()[channelDim])
        .transpose(back);
  }

  /// Whether each channel has windows of its own, of few pixels.
  bool isDepthwise() {
    constexpr int64_t kMostTaps = 49;
    return groups > 1 && weights.getDimSize(0) == groups &&
           weights.getDimSize(1) == 1 &&
           weights.getNumElements() <= kMostTaps * groups;
  }

  Term differentiateTaps(Term dy, Term x) {
    Shape low(rank, 0), high(rank, 0), window(weights.getShape().drop_front(2));
    for (int64_t i = 0; i < numSpatial(); ++i) {
      low[spatialDim + i] = op.getPadsLow()[i];
      high[spatialDim + i] = borderAbove(i);
    }
    Term padded = x.padOrCrop(low, high);
    Shape summed = {0}, starts(rank, 0), strides(rank, 1),
          limits(padded.shape());
    for (int64_t i = 0; i < numSpatial(); ++i) {
      summed.push_back(spatialDim + i);
      strides[spatialDim + i] = op.getStrides()[i];
    }
    SmallVector<Value> rows;
    const int64_t taps = weights.getNumElements() / groups;
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = numSpatial(), rest = tap; i-- > 0; rest /= window[i]) {
        const int64_t dim = spatialDim + i;
        starts[dim] = rest % window[i] * op.getDilations()[i];
        limits[dim] = starts[dim] + (resultSize(i) - 1) * strides[dim] + 1;
      }
      rows.push_back((padded.slice(starts, limits, strides) * dy)
                         .sum(summed)
                         .reshape({1, groups}));
    }
    return dy
        .make<nn::ConcatOp>(RankedTensorType::get({taps, groups}, dy.element()),
                            rows, int64_t(0))
        .transpose({1, 0})
        .reshape(weights.getShape());
  }
};

Term expand(nn::ConvDxOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  return Convolution(op, op.getType(), op.getWeights().getType(),
                     op.getDy().getType())
      .differentiateImage(Term(b, op.getDy()), Term(b, op.getWeights()));
}

Term expand(nn::ConvDwOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Convolution conv(op, op.getX().getType(), op.getType(), op.getDy().getType());
  Term dy(b, op.getDy()), x(b, op.getX());
  return conv.isDepthwise() ? conv.differentiateTaps(dy, x)
                            : conv.differentiateWeights(dy, x);
}

struct ExpandConvGradientsPass
    : impl::ExpandConvGradientsPassBase<ExpandConvGradientsPass> {
  using ExpandConvGradientsPassBase::ExpandConvGradientsPassBase;

  void runOnOperation() override {
    if (!libraryCalls)
      return;
    getOperation().walk([&](nn::ConvDxOp op) { visit(op); });
    getOperation().walk([&](nn::ConvDwOp op) { visit(op); });
  }

private:
  template <typename Op> void visit(Op op) {
    auto computes = [&](const codegen::Backend &backend) {
      return backend.isCallRoot(op);
    };
    if (codegen::allBackends(getOperation(), computes))
      return;
    op.replaceAllUsesWith(expand(op).get());
    op.erase();
  }
};

} // namespace
} // namespace partita::simplify

//===- ContractionGradients.cpp - Derivatives of products -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a product to one factor is the product of the cotangent and
// the other factor. Those of a convolution are convolutions:
//
//   to the image     the cotangent, its elements a stride apart, under the
//                    reversed window (a transposed convolution)
//   to the weights   the image under a window that is the whole cotangent; the
//                    batch takes the place of the channels
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/Term.h"

using namespace mlir;
using namespace partita::nn;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

/// The dimensions that are in neither list, in order.
static Shape getFree(int64_t rank, ArrayRef<int64_t> batch,
                     ArrayRef<int64_t> contract) {
  Shape free;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      free.push_back(dim);
  return free;
}

/// The derivative to one factor, which has the given dimensions; `otherX` are
/// those of the other factor. `first` is the dimension of dy that is the other
/// factor's first free one.
static Term differentiateFactor(Term dy, Term other, ArrayRef<int64_t> shape,
                                ArrayRef<int64_t> batch,
                                ArrayRef<int64_t> contract,
                                ArrayRef<int64_t> otherBatch,
                                ArrayRef<int64_t> otherContract,
                                int64_t first) {
  const int64_t rank = static_cast<int64_t>(shape.size()),
                batches = static_cast<int64_t>(batch.size());
  Shape otherFree = getFree(other.rank(), otherBatch, otherContract),
        free = getFree(rank, batch, contract), dyContract, dyBatch, order(rank);
  for (size_t i = 0; i < otherFree.size(); ++i)
    dyContract.push_back(first + static_cast<int64_t>(i));
  for (int64_t i = 0; i < batches; ++i)
    dyBatch.push_back(i);
  // The product has the batch, the factor's free dimensions, and the contracted
  // ones in the order in which the other factor has them.
  int64_t place = 0;
  for (int64_t dim : batch)
    order[dim] = place++;
  for (int64_t dim : free)
    order[dim] = place++;
  auto sorted = llvm::to_vector(llvm::seq<unsigned>(0, contract.size()));
  llvm::sort(sorted, [&](unsigned a, unsigned b) {
    return otherContract[a] < otherContract[b];
  });
  for (unsigned i : sorted)
    order[contract[i]] = place++;
  auto type = RankedTensorType::get(permuted(shape, inversePermutation(order)),
                                    dy.element());
  return dy
      .make<DotOp>(type, dy.get(), other.get(), dyBatch, otherBatch, dyContract,
                   otherFree)
      .transpose(order);
}

LogicalResult DotOp::buildVjp(ImplicitLocOpBuilder &b, ValueRange cotangents,
                              SmallVectorImpl<Value> &operands) {
  Term dy(b, cotangents[0]), lhs(b, getLhs()), rhs(b, getRhs());
  if (!isa<FloatType>(lhs.element()))
    return failure();
  const int64_t batches = static_cast<int64_t>(getLhsBatch().size()),
                contracted = static_cast<int64_t>(getLhsContract().size());
  operands.append(
      {differentiateFactor(dy, rhs, lhs.shape(), getLhsBatch(),
                           getLhsContract(), getRhsBatch(), getRhsContract(),
                           lhs.rank() - contracted),
       differentiateFactor(dy, lhs, rhs.shape(), getRhsBatch(),
                           getRhsContract(), getLhsBatch(), getLhsContract(),
                           batches)});
  return success();
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

namespace {
/// What the derivatives of a convolution share.
struct Convolution {
  ConvOp op;
  int64_t rank, channelDim, spatialDim, groups;

  explicit Convolution(ConvOp op)
      : op(op), rank(op.getType().getRank()), channelDim(op.getChannelDim()),
        spatialDim(op.getFirstSpatialDim()), groups(op.getGroups()) {}

  int64_t numSpatial() { return rank - 2; }
  int64_t imageSize(int64_t i) {
    return op.getX().getType().getDimSize(spatialDim + i);
  }
  int64_t resultSize(int64_t i) {
    return op.getType().getDimSize(spatialDim + i);
  }
  /// How far a window reaches beyond its first pixel.
  int64_t reach(int64_t i) {
    return (op.getWeights().getType().getDimSize(2 + i) - 1) *
           op.getDilations()[i];
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
    return x.make<ConvOp>(
        RankedTensorType::get(shape, x.element()),
        x.padOrCrop(pad, padHigh).padOrCrop(crop, cropHigh).get(),
        weights.get(), op.getLayout(), strides, dilations, low, high, groups);
  }

  Term differentiateImage(Term dy, Term weights);
  Term differentiateWeights(Term dy, Term x);
};
} // namespace

Term Convolution::differentiateImage(Term dy, Term weights) {
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

Term Convolution::differentiateWeights(Term dy, Term x) {
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
    high.push_back((resultSize(i) - 1) * op.getStrides()[i] + 1 + reach(i) -
                   op.getPadsLow()[i] - imageSize(i));
  }
  Term turned = x.reshape(split).transpose(order).reshape(image);
  return convolve(turned, dy.transpose(kernelOrder), op.getDilations(),
                  op.getStrides(), low, high, dy.shape()[channelDim])
      .transpose(back);
}

LogicalResult ConvOp::buildVjp(ImplicitLocOpBuilder &b, ValueRange cotangents,
                               SmallVectorImpl<Value> &operands) {
  Term dy(b, cotangents[0]), x(b, getX()), weights(b, getWeights());
  if (!isa<FloatType>(x.element()))
    return failure();
  Convolution conv(*this);
  operands.append(
      {conv.differentiateImage(dy, weights), conv.differentiateWeights(dy, x)});
  return success();
}

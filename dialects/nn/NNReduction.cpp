//===- NNReduction.cpp - Reductions, windows, softmax ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "dialects/support/Try.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::nn {

LogicalResult ReduceOp::verify() {
  RankedTensorType from = getX().getType();
  int64_t last = -1;
  for (int64_t dim : getDims()) { // C1
    if (dim <= last || dim >= from.getRank())
      return emitOpError("needs increasing dimensions of a tensor with ")
             << from.getRank() << " dimensions, not [" << getDims() << "]";
    last = dim;
  }
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      shape.push_back(from.getDimSize(dim));
  auto expected = RankedTensorType::get(shape, from.getElementType());
  if (getType() != expected) // C2
    return emitOpError("result is ") << getType() << " instead of " << expected;
  return success();
}

SmallVector<int64_t> ReduceOp::getRowDims() {
  return llvm::to_vector(getDims());
}

Cost ReduceOp::getCost() {
  return makeCost(*this, getX().getType().getNumElements(),
                  CostKind::reduction);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Whether windows that slide over `from` give `to`.
template <typename WindowOp>
static LogicalResult verifyWindow(WindowOp op, RankedTensorType from,
                                  RankedTensorType to, Type elementType,
                                  StringRef name = "result") {
  size_t rank = from.getRank();
  ArrayRef<int64_t> window = op.getWindow(), strides = op.getStrides();
  ArrayRef<int64_t> dilations = op.getDilations();
  ArrayRef<int64_t> low = op.getPadsLow(), high = op.getPadsHigh();
  for (ArrayRef<int64_t> entries : {window, strides, dilations, low, high})
    if (entries.size() != rank) // C1
      return op.emitOpError("needs a window, stride, dilation and pair of pads "
                            "for each of the ")
             << rank << " dimensions";
  SmallVector<int64_t> shape;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (window[dim] < 1 || strides[dim] < 1 || dilations[dim] < 1 ||
        low[dim] < 0 || high[dim] < 0)
      return op.emitOpError("needs windows, strides and dilations of at least "
                            "1 and no negative pads, unlike dimension ")
             << dim;
    shape.push_back(getWindowedSize(from.getDimSize(dim), low[dim], high[dim],
                                    window[dim], dilations[dim], strides[dim]));
  }
  auto expected = RankedTensorType::get(shape, elementType);
  if (to != expected) // C2
    return op.emitOpError(name) << " is " << to << " instead of " << expected;
  return success();
}

/// Whether the elements of a window can be numbered.
template <typename WindowOp> static LogicalResult verifyNumbers(WindowOp op) {
  uint64_t size = 1;
  for (int64_t extent : op.getWindow())
    if ((size = llvm::SaturatingMultiply<uint64_t>(size, extent)) >
        std::numeric_limits<int32_t>::max())
      return op.emitOpError("has windows of 2^31 or more elements");
  return success();
}

template <typename WindowOp>
static Cost windowCost(WindowOp op, RankedTensorType windows) {
  int64_t size = 1;
  for (int64_t extent : op.getWindow())
    size *= extent;
  return makeCost(op, size * windows.getNumElements(), CostKind::reduction);
}

LogicalResult WindowReduceOp::verify() {
  return verifyWindow(*this, getX().getType(), getType(),
                      getX().getType().getElementType());
}

Cost WindowReduceOp::getCost() { return windowCost(*this, getType()); }

/// Whether the elements of a window keep their numbers.
static bool keepsNumbers(ArrayRef<int64_t> window, ArrayRef<int64_t> perm) {
  int64_t last = -1;
  for (int64_t dim : perm) {
    if (window[dim] == 1)
      continue;
    if (dim < last)
      return false;
    last = dim;
  }
  return true;
}

/// Whether some window lies wholly in the border along a dimension. Takes no
/// time for the windows whose first element is inside.
static bool hasEmptyWindow(int64_t size, int64_t low, int64_t window,
                           int64_t dilation, int64_t stride, int64_t results) {
  if ((results - 1) * stride - low >= size)
    return true;
  for (int64_t at = 0; at < results && at * stride < low; ++at) {
    int64_t before = low - at * stride;
    int64_t skipped = (before + dilation - 1) / dilation;
    if (skipped >= window || skipped * dilation - before >= size)
      return true;
    if (dilation <= size) // the later ones reach further in
      break;
  }
  return false;
}

LogicalResult WindowArgMaxOp::verify() {
  PARTITA_TRY(verifyWindow(*this, getX().getType(), getType(),
                           IntegerType::get(getContext(), 32)));
  RankedTensorType from = getX().getType(), to = getType();
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    if (hasEmptyWindow(from.getDimSize(dim), getPadsLow()[dim],
                       getWindow()[dim], getDilations()[dim], getStrides()[dim],
                       to.getDimSize(dim))) // C3
      return emitOpError("has a window without elements along dimension ")
             << dim;
  if (failed(verifyNumbers(*this))) // C4
    return failure();
  auto expected = to.clone(from.getElementType());
  if (getMax() && getMax().getType() != expected) // C5
    return emitOpError("max is ")
           << getMax().getType() << " instead of " << expected;
  return success();
}

Cost WindowArgMaxOp::getCost() { return windowCost(*this, getType()); }

bool WindowArgMaxOp::canPermute(ArrayRef<int64_t> perm) {
  return keepsNumbers(getWindow(), perm);
}

LogicalResult WindowSpreadOp::verify() {
  if (failed(verifyWindow(*this, getType(), getDy().getType(),
                          getType().getElementType(), "dy")) ||
      failed(verifyNumbers(*this))) // C4
    return failure();
  if (getChosen().getType().getShape() != getDy().getType().getShape()) // C3
    return emitOpError("needs a number for each element of dy, and not ")
           << getChosen().getType() << " for " << getDy().getType();
  return success();
}

Cost WindowSpreadOp::getCost() { return windowCost(*this, getDy().getType()); }

bool WindowSpreadOp::canPermute(ArrayRef<int64_t> perm) {
  return keepsNumbers(getWindow(), perm);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  return verifyDim(*this, getDim(), getType().getRank()); // C1
}

Cost SoftmaxOp::getCost() {
  return makeCost(*this, 25 * getType().getNumElements(), CostKind::reduction);
}

SmallVector<int64_t> SoftmaxOp::getRowDims() {
  return {static_cast<int64_t>(getDim())};
}

} // namespace partita::nn

//===- ShapeCanonicalize.cpp - Canonical forms of ops that move elements --===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace partita::nn {

/// reshape(reshape(x)) = reshape(x)
static LogicalResult mergeReshapes(ReshapeOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<ReshapeOp>();
  if (!inner)
    return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getX());
  return success();
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                            MLIRContext *) {
  results.add(mergeReshapes);
}

/// transpose(transpose(x)) = transpose(x)
static LogicalResult mergeTransposes(TransposeOp op,
                                     PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return failure();
  rewriter.replaceOpWithNewOp<TransposeOp>(
      op, inner.getX(), permuted(inner.getPermutation(), op.getPermutation()));
  return success();
}

/// A transpose that moves only dimensions of size 1 is a reshape.
static LogicalResult transposeToReshape(TransposeOp op,
                                        PatternRewriter &rewriter) {
  ArrayRef<int64_t> shape = op.getX().getType().getShape();
  int64_t last = -1;
  for (int64_t dim : op.getPermutation()) {
    if (shape[dim] == 1)
      continue;
    if (dim < last)
      return failure();
    last = dim;
  }
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
  return success();
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                              MLIRContext *) {
  results.add(mergeTransposes);
  results.add(transposeToReshape);
}

/// broadcast(broadcast(x)) = broadcast(x)
static LogicalResult mergeBroadcasts(BroadcastOp op,
                                     PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<BroadcastOp>();
  if (!inner)
    return failure();
  rewriter.replaceOpWithNewOp<BroadcastOp>(
      op, op.getType(), inner.getX(), permuted(op.getDims(), inner.getDims()));
  return success();
}

/// Dimensions of size 1 say nothing in a broadcast: its operand has none, so
/// that a vector along the channels looks the same wherever it comes from.
static LogicalResult dropUnitDims(BroadcastOp op, PatternRewriter &rewriter) {
  RankedTensorType from = op.getX().getType();
  SmallVector<int64_t> shape, dims;
  for (auto [size, dim] : llvm::zip_equal(from.getShape(), op.getDims())) {
    if (size == 1)
      continue;
    shape.push_back(size);
    dims.push_back(dim);
  }
  if (static_cast<int64_t>(shape.size()) == from.getRank())
    return failure();
  Value small = ReshapeOp::create(
      rewriter, op.getLoc(),
      RankedTensorType::get(shape, from.getElementType()), op.getX());
  rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), small, dims);
  return success();
}

/// A broadcast that only adds dimensions of size 1 is a reshape.
static LogicalResult broadcastToReshape(BroadcastOp op,
                                        PatternRewriter &rewriter) {
  if (op.getX().getType().getNumElements() != op.getType().getNumElements())
    return failure();
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
  return success();
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                              MLIRContext *) {
  results.add(mergeBroadcasts);
  results.add(broadcastToReshape);
  results.add(dropUnitDims);
}

/// slice(slice(x)) = slice(x)
static LogicalResult mergeSlices(SliceOp op, PatternRewriter &rewriter) {
  auto inner = op.getX().getDefiningOp<SliceOp>();
  if (!inner)
    return failure();
  SmallVector<int64_t> starts, limits, strides;
  for (int64_t dim = 0; dim < op.getType().getRank(); ++dim) {
    int64_t step = inner.getStrides()[dim];
    int64_t start = inner.getStarts()[dim] + op.getStarts()[dim] * step;
    int64_t stride = op.getStrides()[dim] * step;
    int64_t size = op.getType().getDimSize(dim);
    starts.push_back(start);
    strides.push_back(stride);
    limits.push_back(size == 0 ? start : start + (size - 1) * stride + 1);
  }
  rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getX(), starts,
                                       limits, strides);
  return success();
}

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                          MLIRContext *) {
  results.add(mergeSlices);
}

} // namespace partita::nn

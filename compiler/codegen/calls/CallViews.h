//===- CallViews.h - Ops as calls of views of tensors -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_CALLVIEWS_H
#define PARTITA_COMPILER_CODEGEN_CALLS_CALLVIEWS_H

#include "compiler/codegen/calls/CallMatcher.h"

namespace partita::codegen {

/// Makes the `nn.dot` a call of kind `dot`, [B.., M, K] * [B.., K, N]: a rule's
/// `match`. Rows or columns lie side by side in each operand, and rows in the
/// result. Returns false if strides cannot express that.
bool matchDotViews(CallMatcher &call, mlir::Operation *root);

/// Makes an `nn.attention` a call of kind `attention`, with masks of the shape
/// of the scores. Returns false if it is none: nothing follows the result.
bool matchAttentionViews(CallMatcher &call, mlir::Operation *root);

/// What a plan says of a convolution, or of a derivative of one.
template <typename Op>
plan::ConvAttr describeConv(Op conv, bool winograd = false,
                            plan::ViewAttr bias = {}) {
  return plan::ConvAttr::get(
      conv.getContext(), conv.getStrides(), conv.getDilations(),
      conv.getPadsLow(), conv.getPadsHigh(), conv.getGroups(), winograd, bias);
}

/// The permutation of an image's dimensions that gives the order [N, C,
/// spatial..]. `last`: the image has its channels last, not second.
llvm::SmallVector<int64_t> getChannelsFirst(int64_t rank, bool last);

/// Whether the windows of an `nn.window_reduce` are those of an image with its
/// channels last; else they are second, or the image has none.
bool hasChannelsLast(mlir::Operation *pool);

/// Makes the `nn.window_reduce` a call of kind `pool_max`, or with the division
/// that follows a sum one of kind `pool_avg`, on [N, C, spatial..]. Returns
/// false if it is none. Every window holds an element.
bool matchPoolViews(CallMatcher &call, mlir::Operation *root);

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_CALLVIEWS_H

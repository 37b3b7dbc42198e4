//===- CallViews.cpp - Products and attention as calls --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/CallViews.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;

namespace partita::codegen {

/// Whether the elements along a dimension, counted from the end, lie side by
/// side. Libraries describe no matrix with gaps in both dimensions, or are
/// thousands of times slower for it.
static bool hasDense(const StridedView &matrix, int64_t dim) {
  const size_t i = matrix.shape.size() + dim;
  return matrix.shape[i] == 1 || matrix.strides[i] == 1;
}

bool matchDotViews(CallMatcher &call, Operation *root) {
  auto dot = cast<nn::DotOp>(root);
  call.kind = plan::CallKind::dot;
  std::optional<StridedView> lhs = call.operand(dot.getLhs()),
                             rhs = call.operand(dot.getRhs());
  if (!lhs || !rhs)
    return false;
  SmallVector<int64_t> result;
  for (int64_t dim : dot.getLhsBatch())
    result.push_back(lhs->shape[dim]);
  const auto leftFree = nn::getFreeDims(lhs->shape.size(), dot.getLhsBatch(),
                                        dot.getLhsContract()),
             rightFree = nn::getFreeDims(rhs->shape.size(), dot.getRhsBatch(),
                                         dot.getRhsContract());
  SmallVector<int64_t> left(dot.getLhsBatch()), right(dot.getRhsBatch());
  llvm::append_range(left, leftFree);
  llvm::append_range(left, dot.getLhsContract());
  llvm::append_range(right, dot.getRhsContract());
  llvm::append_range(right, rightFree);
  auto sizeOf = [](const StridedView &view, ArrayRef<int64_t> dims) {
    return llvm::product_of(nn::permuted(view.shape, dims));
  };
  const int64_t m = sizeOf(*lhs, leftFree), n = sizeOf(*rhs, rightFree),
                k = sizeOf(*lhs, dot.getLhsContract());
  SmallVector<int64_t> leftShape(result), rightShape(result);
  leftShape.append({m, k});
  rightShape.append({k, n});
  result.append({m, n});
  lhs = lhs->permute(left).reshape(leftShape);
  rhs = rhs->permute(right).reshape(rightShape);
  if (!lhs || !rhs || !call.reshapeOutput(result) ||
      !(hasDense(*lhs, -1) || hasDense(*lhs, -2)) ||
      !(hasDense(*rhs, -1) || hasDense(*rhs, -2)))
    return false;
  if (!hasDense(call.output, -1)) {
    // Columns side by side: the product of the transposed matrices, the other
    // way round, has rows.
    if (!hasDense(call.output, -2) ||
        nn::getTensorType(dot.getLhs()).getElementType() !=
            nn::getTensorType(dot.getRhs()).getElementType())
      return false;
    auto swap = llvm::to_vector(llvm::seq<int64_t>(0, result.size()));
    std::swap(swap[result.size() - 2], swap[result.size() - 1]);
    std::swap(lhs, rhs);
    lhs = lhs->permute(swap);
    rhs = rhs->permute(swap);
    call.permuteOutput(swap);
  }
  call.operands = {*lhs, *rhs};
  return true;
}

bool matchAttentionViews(CallMatcher &call, Operation *root) {
  auto attention = cast<nn::AttentionOp>(root);
  call.kind = plan::CallKind::attention;
  if (!call.postOps.empty())
    return false;
  for (Value value : {attention.getQ(), attention.getK(), attention.getV()}) {
    std::optional<StridedView> view = call.operand(value);
    if (!view)
      return false;
    call.operands.push_back(*view);
  }
  SmallVector<int64_t> scores(nn::getTensorType(attention.getQ()).getShape());
  scores[3] = nn::getTensorType(attention.getK()).getDimSize(2);
  auto mask = [&](Value value, std::optional<StridedView> &to) {
    if (!value)
      return true;
    to = call.operand(value);
    if (!to)
      return false;
    for (size_t dim = 0; dim < 4; ++dim)
      if (to->shape[dim] != scores[dim])
        to->strides[dim] = 0;
    to->shape = scores;
    return true;
  };
  if (!mask(attention.getMaskMul(), call.maskMul) ||
      !mask(attention.getMaskAdd(), call.maskAdd))
    return false;
  call.details = plan::AttentionAttr::get(
      attention.getContext(), call.toAttr(call.maskMul),
      call.toAttr(call.maskAdd),
      plan::Number(attention.getScale().convertToDouble()));
  return true;
}

} // namespace partita::codegen

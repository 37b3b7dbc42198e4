//===- StridedLayout.cpp - Where the elements of a tensor lie -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/StridedLayout.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace partita::nn {

StridedLayout StridedLayout::dense(ArrayRef<int64_t> shape) {
  return {SmallVector<int64_t>(shape), computeStrides(shape), 0};
}

std::optional<StridedLayout>
StridedLayout::reshape(ArrayRef<int64_t> to) const {
  if (llvm::is_contained(shape, 0))
    return std::nullopt;
  StridedLayout view{SmallVector<int64_t>(to), {}, offset};
  view.strides.assign(to.size(), 0);
  size_t i = 0, j = 0;
  while (i < shape.size() || j < to.size()) {
    // A group of dimensions on either side with equal products.
    size_t firstTo = j;
    int64_t size = 1, toSize = 1, stride = 0;
    bool first = true;
    auto takeFrom = [&] {
      if (shape[i] != 1) {
        // Merged dimensions must follow each other in memory.
        if (!first && stride != strides[i] * shape[i])
          return false;
        stride = strides[i];
        first = false;
      }
      size *= shape[i++];
      return true;
    };
    if (i < shape.size() && !takeFrom())
      return std::nullopt;
    if (j < to.size())
      toSize *= to[j++];
    while (size != toSize) {
      if (toSize < size) {
        toSize *= to[j++];
      } else if (!takeFrom()) {
        return std::nullopt;
      }
    }
    for (size_t k = j; k-- > firstTo;) {
      view.strides[k] = stride;
      stride *= to[k];
    }
  }
  return view;
}

StridedLayout StridedLayout::permute(ArrayRef<int64_t> permutation) const {
  StridedLayout view{{}, {}, offset};
  for (int64_t dim : permutation) {
    view.shape.push_back(shape[dim]);
    view.strides.push_back(strides[dim]);
  }
  return view;
}

//===----------------------------------------------------------------------===//
// What views make of their operand
//===----------------------------------------------------------------------===//

std::optional<StridedLayout>
ReshapeOp::getResultLayout(const StridedLayout &operand) {
  return operand.reshape(getType().getShape());
}

std::optional<StridedLayout>
ReshapeOp::getOperandLayout(const StridedLayout &result) {
  return result.reshape(getX().getType().getShape());
}

bool ReshapeOp::keepsElements() { return true; }

std::optional<StridedLayout>
TransposeOp::getResultLayout(const StridedLayout &operand) {
  return operand.permute(getPermutation());
}

std::optional<StridedLayout>
TransposeOp::getOperandLayout(const StridedLayout &result) {
  return result.permute(invertPermutationVector(getPermutation()));
}

bool TransposeOp::keepsElements() { return true; }

std::optional<StridedLayout>
BroadcastOp::getResultLayout(const StridedLayout &operand) {
  StridedLayout view{
      SmallVector<int64_t>(getType().getShape()), {}, operand.offset};
  view.strides.assign(view.shape.size(), 0);
  for (auto [i, dim] : llvm::enumerate(getDims()))
    if (operand.shape[i] != 1)
      view.strides[dim] = operand.strides[i];
  return view;
}

std::optional<StridedLayout>
SliceOp::getResultLayout(const StridedLayout &operand) {
  StridedLayout view = operand;
  view.shape.assign(getType().getShape().begin(), getType().getShape().end());
  for (size_t i = 0; i < view.shape.size(); ++i) {
    view.offset += getStarts()[i] * view.strides[i];
    view.strides[i] *= getStrides()[i];
  }
  return view;
}

} // namespace partita::nn

//===- StridedView.cpp - Values as strided views of others ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/StridedView.h"

#include "dialects/nn/NNDialect.h"

using namespace mlir;

namespace partita::codegen {

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

StridedView StridedView::dense(Value value) {
  return {value, StridedLayout::dense(getShape(value))};
}

std::optional<StridedView>
StridedView::with(std::optional<nn::StridedLayout> layout) const {
  if (!layout)
    return std::nullopt;
  return StridedView(base, std::move(*layout));
}

std::optional<StridedView> StridedView::reshape(ArrayRef<int64_t> to) const {
  return with(StridedLayout::reshape(to));
}

StridedView StridedView::permute(ArrayRef<int64_t> permutation) const {
  return {base, StridedLayout::permute(permutation)};
}

bool StridedView::isNested() const {
  SmallVector<std::pair<int64_t, int64_t>> dims; // stride, extent
  for (auto [stride, extent] : llvm::zip_equal(strides, shape))
    if (extent > 1 && stride != 0)
      dims.emplace_back(stride, extent);
  llvm::sort(dims);
  for (size_t i = 1; i < dims.size(); ++i)
    if (dims[i].first / dims[i - 1].second < dims[i - 1].first)
      return false;
  return true;
}

std::optional<StridedView> viewOf(Value value, const OpSet &ops, OpSet &used) {
  Operation *op = value.getDefiningOp();
  if (!op || !ops.contains(op) || isa<nn::ConstantOp>(op))
    return StridedView::dense(value);
  auto view = dyn_cast<nn::ViewOpInterface>(op);
  if (!view)
    return std::nullopt;
  std::optional<StridedView> source = viewOf(op->getOperand(0), ops, used);
  if (!source)
    return std::nullopt;
  used.insert(op);
  return source->with(view.getResultLayout(*source));
}

} // namespace partita::codegen

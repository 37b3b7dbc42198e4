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

std::optional<StridedView> StridedView::reshape(ArrayRef<int64_t> to) const {
  std::optional<StridedLayout> layout = StridedLayout::reshape(to);
  if (!layout)
    return std::nullopt;
  return StridedView(base, std::move(*layout));
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
  std::optional<nn::StridedLayout> layout = view.getResultLayout(*source);
  if (!layout)
    return std::nullopt;
  return StridedView(source->base, std::move(*layout));
}

std::optional<StridedView> viewBefore(nn::ViewOpInterface op,
                                      const StridedView &after) {
  std::optional<nn::StridedLayout> layout = op.getOperandLayout(after);
  if (!layout)
    return std::nullopt;
  return StridedView(after.base, std::move(*layout));
}

std::optional<double> getSplat(Value value, OpSet &used) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<nn::ViewOpInterface>(op)) {
    std::optional<double> splat = getSplat(op->getOperand(0), used);
    if (splat)
      used.insert(op);
    return splat;
  }
  auto constant = dyn_cast<nn::ConstantOp>(op);
  if (!constant)
    return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat())
    return std::nullopt;
  used.insert(op);
  auto number = dyn_cast<FloatAttr>(dense.getSplatValue<Attribute>());
  if (!number)
    return std::nullopt;
  return number.getValueAsDouble();
}

std::optional<double> getSplat(Value value) {
  OpSet used;
  return getSplat(value, used);
}

} // namespace partita::codegen

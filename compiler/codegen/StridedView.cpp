//===- StridedView.cpp - Values as strided views of others -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/StridedView.h"

#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::codegen {

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

StridedView StridedView::dense(Value value) {
  StridedView view{value, SmallVector<int64_t>(getShape(value)), {}, 0};
  view.strides.assign(view.shape.size(), 1);
  for (size_t i = view.shape.size(); i-- > 1;)
    view.strides[i - 1] = view.strides[i] * view.shape[i];
  return view;
}

std::optional<StridedView> StridedView::reshape(ArrayRef<int64_t> to) const {
  if (llvm::is_contained(shape, 0))
    return std::nullopt;
  StridedView view{base, SmallVector<int64_t>(to), {}, offset};
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

StridedView StridedView::permute(ArrayRef<int64_t> permutation) const {
  StridedView view{base, {}, {}, offset};
  for (int64_t dim : permutation) {
    view.shape.push_back(shape[dim]);
    view.strides.push_back(strides[dim]);
  }
  return view;
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
  if (!op || !ops.contains(op))
    return StridedView::dense(value);
  if (!isa<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp, nn::SliceOp>(op))
    return std::nullopt;
  std::optional<StridedView> source = viewOf(op->getOperand(0), ops, used);
  if (!source)
    return std::nullopt;
  used.insert(op);
  return TypeSwitch<Operation *, std::optional<StridedView>>(op)
      .Case([&](nn::TransposeOp transpose) {
        return source->permute(transpose.getPermutation());
      })
      .Case([&](nn::ReshapeOp reshape) {
        return source->reshape(getShape(reshape.getResult()));
      })
      .Case([&](nn::BroadcastOp broadcast) {
        StridedView view{source->base, {}, {}, source->offset};
        view.shape.assign(getShape(value).begin(), getShape(value).end());
        view.strides.assign(view.shape.size(), 0);
        for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
          if (source->shape[i] != 1)
            view.strides[dim] = source->strides[i];
        return view;
      })
      .Case([&](nn::SliceOp slice) {
        StridedView view = *source;
        view.shape.assign(getShape(value).begin(), getShape(value).end());
        for (size_t i = 0; i < view.shape.size(); ++i) {
          view.offset += slice.getStarts()[i] * view.strides[i];
          view.strides[i] *= slice.getStrides()[i];
        }
        return view;
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<StridedView> viewBefore(Operation *op, const StridedView &after) {
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(after.shape.size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      inverse[from] = to;
    return after.permute(inverse);
  }
  return after.reshape(getShape(op->getOperand(0)));
}

std::optional<double> getSplat(Value value, OpSet &used) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp>(op)) {
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

//===- ShapeFold.cpp - Folding of ops that move elements ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/fold/EmptyTensors.h"
#include "dialects/nn/fold/ScalarEmit.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include <algorithm>

using namespace mlir;

namespace partita::nn {

/// The elements of a constant that a view of it has.
template <typename ViewOp>
static OpFoldResult foldView(ViewOp op, Attribute x) {
  if (!x)
    return nullptr;
  const StridedLayout view =
      *op.getResultLayout(StridedLayout::dense(op.getX().getType().getShape()));
  return mapElements(x, op.getType(), [&](ArrayRef<int64_t> index) {
    return view.offset + linearize(index, view.strides);
  });
}

/// What the indices of a gather choose along a dimension of `size`; fails if
/// they are not known. Without anything to choose from there is no index to
/// clamp to.
static FailureOr<SmallVector<int64_t>> readIndices(Attribute attr, int64_t size,
                                                   RankedTensorType result) {
  auto indices = dyn_cast_or_null<DenseElementsAttr>(attr);
  if (hasNoElements(result) || !indices || !isFoldable(indices.getType()))
    return failure();
  return llvm::map_to_vector(
      indices.getValues<APInt>(), [&](const APInt &index) {
        const int64_t i = index.getSExtValue();
        return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size - 1);
      });
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  auto x = dyn_cast_or_null<DenseElementsAttr>(adaptor.getX());
  if (!x || (!x.isSplat() && !isFoldable(getType())))
    return nullptr;
  return x.reshape(getType());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentityPermutation(getPermutation()))
    return getX();
  return foldView(*this, adaptor.getX());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  return foldView(*this, adaptor.getX());
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getX().getType() == getType())
    return getX();
  return foldView(*this, adaptor.getX());
}

OpFoldResult ReverseOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> shape = getType().getShape();
  if (llvm::all_of(getDims(), [&](int64_t dim) { return shape[dim] <= 1; }))
    return getX();
  SmallVector<int64_t> strides = computeStrides(shape);
  return mapElements(adaptor.getX(), getType(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> source(index);
    for (int64_t dim : getDims())
      source[dim] = shape[dim] - 1 - source[dim];
    return linearize(source, strides);
  });
}

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  RankedTensorType from = getX().getType();
  if (from == getType())
    return getX();
  auto x = dyn_cast_or_null<DenseElementsAttr>(adaptor.getX());
  auto value = dyn_cast_or_null<DenseElementsAttr>(adaptor.getValue());
  // Around nothing there is the border alone.
  if (value && hasNoElements(from) && !hasNoElements(getType()))
    return DenseElementsAttr::get(getType(),
                                  *value.getValues<Attribute>().begin());
  if (!x || !value || !isFoldable(getType()))
    return nullptr;
  SmallVector<int64_t> strides = computeStrides(from.getShape());
  SmallVector<Attribute> inner = llvm::to_vector(x.getValues<Attribute>());
  Attribute border = *value.getValues<Attribute>().begin();
  SmallVector<Attribute> elements;
  forEachIndex(getType().getShape(), [&](ArrayRef<int64_t> index) {
    int64_t flat = 0;
    for (auto [dim, i] : llvm::enumerate(index)) {
      int64_t at = i - getLow()[dim];
      if (at < 0 || at >= from.getDimSize(dim)) {
        elements.push_back(border);
        return;
      }
      flat += at * strides[dim];
    }
    elements.push_back(inner[flat]);
  });
  return DenseElementsAttr::get(getType(), elements);
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getNumOperands() == 1)
    return getOperands()[0];
  if (!isFoldable(getType()))
    return nullptr;
  SmallVector<SmallVector<Attribute>> parts;
  for (Attribute attr : adaptor.getOperands()) {
    auto part = dyn_cast_or_null<DenseElementsAttr>(attr);
    if (!part)
      return nullptr;
    parts.push_back(llvm::to_vector(part.getValues<Attribute>()));
  }
  // Each position of the dimensions before has a row of each part.
  const size_t rows =
      llvm::product_of(getType().getShape().take_front(getDim()));
  SmallVector<Attribute> elements;
  for (size_t row = 0; row < rows; ++row)
    for (ArrayRef<Attribute> part : parts)
      llvm::append_range(
          elements, part.slice(row * (part.size() / rows), part.size() / rows));
  return DenseElementsAttr::get(getType(), elements);
}

OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> from = getX().getType().getShape(),
                    indices = getIndices().getType().getShape();
  const int64_t dim = getDim(), indexRank = indices.size();
  auto chosen = readIndices(adaptor.getIndices(), from[dim], getType());
  if (failed(chosen))
    return nullptr;
  SmallVector<int64_t> strides = computeStrides(from),
                       indexStrides = computeStrides(indices);
  return mapElements(adaptor.getX(), getType(), [&](ArrayRef<int64_t> index) {
    int64_t which = linearize(index.slice(dim, indexRank), indexStrides);
    SmallVector<int64_t> source(index.take_front(dim));
    source.push_back((*chosen)[which]);
    llvm::append_range(source, index.drop_front(dim + indexRank));
    return linearize(source, strides);
  });
}

OpFoldResult GatherElementsOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> from = getX().getType().getShape();
  const int64_t dim = getDim();
  auto chosen = readIndices(adaptor.getIndices(), from[dim], getType());
  if (failed(chosen))
    return nullptr;
  int64_t next = 0;
  SmallVector<int64_t> strides = computeStrides(from);
  return mapElements(adaptor.getX(), getType(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> source(index);
    source[dim] = (*chosen)[next++];
    return linearize(source, strides);
  });
}

OpFoldResult IotaOp::fold(FoldAdaptor) {
  if (!isFoldable(getType()))
    return nullptr;
  SmallVector<Attribute> elements;
  forEachIndex(getType().getShape(), [&](ArrayRef<int64_t> index) {
    elements.push_back(makeNumber(getType().getElementType(),
                                  static_cast<double>(index[getDim()])));
  });
  return DenseElementsAttr::get(getType(), elements);
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  RankedTensorType from = getX().getType();
  if (getDims().empty())
    return getX();
  auto x = dyn_cast_or_null<DenseElementsAttr>(adaptor.getX());
  if (!x || !isFoldable(from) || !isFoldable(getType()))
    return nullptr;
  Type elementType = from.getElementType();
  ScalarFunction combine(getLoc(), {elementType, elementType},
                         [&](OpBuilder &b, Location loc, ValueRange v) {
                           return scalar::combine(b, loc, getKind(), v[0], v[1],
                                                  elementType);
                         });
  SmallVector<int64_t> resultStrides = computeStrides(getType().getShape());
  SmallVector<Attribute> sums(getType().getNumElements(),
                              getNeutralElement(getKind(), elementType));
  SmallVector<Attribute> elements = llvm::to_vector(x.getValues<Attribute>());
  int64_t next = 0;
  bool ok = true;
  forEachIndex(from.getShape(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> kept;
    for (auto [dim, i] : llvm::enumerate(index))
      if (!llvm::is_contained(getDims(), static_cast<int64_t>(dim)))
        kept.push_back(i);
    Attribute element = elements[next++];
    if (!ok)
      return;
    Attribute &sum = sums[linearize(kept, resultStrides)];
    sum = combine.evaluate({sum, toScalar(element)});
    ok = static_cast<bool>(sum);
  });
  if (!ok)
    return nullptr;
  for (Attribute &sum : sums)
    sum = fromScalar(sum, elementType);
  return DenseElementsAttr::get(getType(), sums);
}

} // namespace partita::nn

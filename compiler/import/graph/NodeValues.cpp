//===- NodeValues.cpp - Making values for a node --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/model/TensorData.h"
#include "dialects/nn/NodeScopes.h"
#include "dialects/nn/fold/ConstantElements.h"
#include "dialects/nn/fold/EmptyTensors.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

bool NodeImport::checkSameType(Value x, Value y) {
  if (!x || !y)
    return false;
  if (x.getType() == y.getType())
    return true;
  emitError(loc) << node.op_type() << ": the operands have different types, "
                 << x.getType() << " and " << y.getType();
  return false;
}

Value NodeImport::compare(nn::ComparePredicate predicate, Value x, Value y) {
  if (!checkSameType(x, y))
    return {};
  auto type = RankedTensorType::get(shapeOf(x), b.getI1Type());
  return make<nn::CompareOp>(type, predicate, x, y);
}

Value NodeImport::select(Value predicate, Value onTrue, Value onFalse) {
  if (!predicate || !checkSameType(onTrue, onFalse))
    return {};
  return make<nn::SelectOp>(onTrue.getType(), predicate, onTrue, onFalse);
}

Value NodeImport::cast(Value x, Type element, bool saturate) {
  if (!x || elementOf(x) == element)
    return x;
  auto type = RankedTensorType::get(shapeOf(x), element);
  Value result = make<nn::CastOp>(type, x, b.getBoolAttr(saturate));
  const bool isHalf = element.isF16() || element.isBF16();
  if (auto cast = result.getDefiningOp<nn::CastOp>(); cast && isHalf)
    cast->setAttr(nn::kInnerAttr, b.getUnitAttr());
  return result;
}

Value NodeImport::constant(DenseElementsAttr elements) {
  return nn::ConstantOp::create(b, loc, elements.getType(), elements);
}

Value NodeImport::splat(double value, ArrayRef<int64_t> shape, Type element) {
  RankedTensorType type = tensor(shape, element);
  return type ? constant(nn::makeSplat(type, value)) : Value();
}

Value NodeImport::splat(double value, Value like) {
  return like ? splat(value, shapeOf(like), elementOf(like)) : Value();
}

Value NodeImport::indices(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    b.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value NodeImport::numbers(ArrayRef<double> values, Type element) {
  auto type =
      RankedTensorType::get({static_cast<int64_t>(values.size())}, element);
  SmallVector<Attribute> attributes;
  for (double value : values)
    attributes.push_back(nn::makeNumber(element, value));
  return constant(DenseElementsAttr::get(type, attributes));
}

Value NodeImport::reshape(Value x, ArrayRef<int64_t> shape) {
  if (!x || shapeOf(x) == shape)
    return x;
  RankedTensorType type = PARTITA_TRY(tensor(shape, elementOf(x)));
  if (type.getNumElements() != typeOf(x).getNumElements()) {
    emitError(loc) << node.op_type() << ": " << x.getType()
                   << " cannot be reshaped to " << type;
    return {};
  }
  return make<nn::ReshapeOp>(type, x);
}

Value NodeImport::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (!x)
    return {};
  if (isIdentityPermutation(permutation))
    return x;
  return make<nn::TransposeOp>(
      RankedTensorType::get(nn::permuted(shapeOf(x), permutation),
                            elementOf(x)),
      x, permutation);
}

Value NodeImport::broadcastDims(Value x, ArrayRef<int64_t> dims,
                                ArrayRef<int64_t> shape) {
  if (!x || shapeOf(x) == shape)
    return x;
  RankedTensorType type = PARTITA_TRY(tensor(shape, elementOf(x)));
  auto fits = [&](int64_t size, int64_t dim) {
    return size == 1 || size == shape[dim];
  };
  if (shapeOf(x).size() != dims.size() || !equal(shapeOf(x), dims, fits)) {
    emitError(loc) << node.op_type() << ": " << x.getType()
                   << " does not broadcast to " << type;
    return {};
  }
  return make<nn::BroadcastOp>(type, x, dims);
}

Value NodeImport::broadcastTo(Value x, ArrayRef<int64_t> shape) {
  if (!x)
    return {};
  size_t rank = shapeOf(x).size();
  if (rank > shape.size()) {
    emitError(loc) << node.op_type() << ": " << x.getType()
                   << " does not broadcast to rank " << shape.size();
    return {};
  }
  int64_t lead = shape.size() - rank;
  return broadcastDims(
      x, to_vector(seq<int64_t>(lead, static_cast<int64_t>(shape.size()))),
      shape);
}

Value NodeImport::slice(Value x, ArrayRef<int64_t> starts,
                        ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
  if (!x)
    return {};
  Shape shape;
  for (auto [start, limit, stride] : zip_equal(starts, limits, strides))
    shape.push_back(divideCeil(limit - start, stride));
  if (shapeOf(x) == ArrayRef(shape))
    return x;
  return make<nn::SliceOp>(RankedTensorType::get(shape, elementOf(x)), x,
                           starts, limits, strides);
}

Value NodeImport::part(Value x, int64_t dim, int64_t begin, int64_t end) {
  if (!x)
    return {};
  Shape limits(shapeOf(x)), starts(limits.size(), 0);
  starts[dim] = begin;
  limits[dim] = end;
  return slice(x, starts, limits, Shape(limits.size(), 1));
}

Value NodeImport::at(Value x, int64_t dim, int64_t place) {
  if (!x)
    return {};
  Shape shape(shapeOf(x));
  shape.erase(shape.begin() + dim);
  return reshape(part(x, dim, place, place + 1), shape);
}

Value NodeImport::reverse(Value x, ArrayRef<int64_t> dims) {
  if (!x || dims.empty())
    return x;
  return make<nn::ReverseOp>(x.getType(), x, dims);
}

Value NodeImport::concat(ArrayRef<Value> values, int64_t dim) {
  if (is_contained(values, Value()))
    return {};
  if (values.size() == 1)
    return values.front();
  Shape shape(shapeOf(values.front()));
  shape[dim] = 0;
  for (Value value : values) {
    Shape other(shapeOf(value));
    bool sameRank = other.size() == shape.size();
    int64_t size = sameRank ? other[dim] : 0;
    if (sameRank)
      other[dim] = shape[dim];
    if (other != shape || elementOf(value) != elementOf(values.front())) {
      emitError(loc) << node.op_type() << ": " << value.getType() << " and "
                     << values.front().getType()
                     << " cannot be joined along axis " << dim;
      return {};
    }
    shape[dim] += size;
  }
  RankedTensorType type = tensor(shape, elementOf(values.front()));
  return type ? make<nn::ConcatOp>(type, values, dim) : Value();
}

Value NodeImport::stack(ArrayRef<Value> values, int64_t dim) {
  SmallVector<Value> rows;
  for (Value value : values) {
    if (!value)
      return {};
    Shape shape(shapeOf(value));
    // One of a smaller rank is an error of `concat`.
    shape.insert(shape.begin() + std::min<int64_t>(dim, shape.size()), 1);
    rows.push_back(reshape(value, shape));
  }
  return concat(rows, dim);
}

Value NodeImport::gather(Value x, Value indices, int64_t dim) {
  if (!x || !indices)
    return {};
  ArrayRef<int64_t> from = shapeOf(x);
  Shape shape(from.take_front(dim));
  append_range(shape, shapeOf(indices));
  append_range(shape, from.drop_front(dim + 1));
  RankedTensorType type = PARTITA_TRY(tensor(shape, elementOf(x)));
  if (from[dim] == 0 && type.getNumElements() != 0) {
    emitError(loc) << node.op_type() << ": there is nothing to choose from in "
                   << x.getType() << " along axis " << dim;
    return {};
  }
  return make<nn::GatherOp>(type, x, indices, dim);
}

Value NodeImport::pad(Value x, Value value, ArrayRef<int64_t> low,
                      ArrayRef<int64_t> high) {
  if (!x || !value)
    return {};
  Shape shape(shapeOf(x));
  for (auto [size, l, h] : zip_equal(shape, low, high))
    size += l + h;
  if (shapeOf(x) == ArrayRef(shape))
    return x;
  // Around nothing there is the border alone.
  if (nn::hasNoElements(x.getType()))
    return broadcastDims(value, {}, shape);
  RankedTensorType type = tensor(shape, elementOf(x));
  return type ? make<nn::PadOp>(type, x, value, low, high) : Value();
}

Value NodeImport::reduce(nn::ReduceKind kind, Value x, ArrayRef<int64_t> dims,
                         bool keep) {
  if (!x)
    return {};
  Shape reduced, kept(shapeOf(x));
  for (auto [i, size] : enumerate(shapeOf(x))) {
    if (is_contained(dims, static_cast<int64_t>(i)))
      kept[i] = 1;
    else
      reduced.push_back(size);
  }
  if (!dims.empty())
    x = make<nn::ReduceOp>(RankedTensorType::get(reduced, elementOf(x)), kind,
                           x, dims);
  return keep ? reshape(x, kept) : x;
}

Value NodeImport::mean(Value x, ArrayRef<int64_t> dims, bool keep) {
  if (!x)
    return {};
  double count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(shapeOf(x)[dim]);
  Value sum = reduce(nn::ReduceKind::sum, x, dims, keep);
  return binary<nn::DivOp>(sum, splat(count, sum));
}

} // namespace partita::import

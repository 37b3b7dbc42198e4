//===- Ranking.cpp - Where the largest elements are -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexMath.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Where along a dimension the largest or smallest element is, the first or
/// last of several; the dimension stays, of size 1. Where a NaN is, the first
/// or last place.
Value makeArg(NodeImport &n, Value x, int64_t dim, bool largest, bool last) {
  ArrayRef<int64_t> shape = n.shapeOf(x);
  Value best = PARTITA_TRY(
      n.reduce(largest ? nn::ReduceKind::max : nn::ReduceKind::min, x, {dim},
               /*keep=*/true));
  Value isWorse =
      n.compare(largest ? nn::ComparePredicate::lt : nn::ComparePredicate::gt,
                x, n.broadcastTo(best, shape));
  Value place = makeIota(n, shape, dim);
  // What is not the best one stands behind it; so the result is in range.
  int64_t none = last ? 0 : shape[dim] - 1;
  return n.reduce(last ? nn::ReduceKind::max : nn::ReduceKind::min,
                  n.select(isWorse, none, place), {dim},
                  /*keep=*/true);
}

template <bool largest> LogicalResult importArg(NodeImport &n) {
  Value x = n.input(0);
  int64_t dim = PARTITA_TRY(n.axisAttr(0, n.typeOf(x).getRank()));
  Shape shape(n.shapeOf(x));
  const bool isEmpty = shape[dim] == 0;
  shape[dim] = 1;
  if (isEmpty && product(shape) != 0)
    return n.error("there is nothing to choose from along axis " + Twine(dim));
  if (n.intAttr("keepdims", 1) == 0)
    shape.erase(shape.begin() + dim);
  if (isEmpty)
    return n.result(0, n.splat(0, shape, n.b.getI64Type()));
  bool last = n.intAttr("select_last_index", 0) != 0;
  return n.result(0, n.reshape(makeArg(n, x, dim, largest, last), shape));
}

/// 1 for the first largest element along the axis, 0 elsewhere. Before opset 13
/// the tensor was seen as a matrix whose rows begin at the axis.
LogicalResult importHardmax(NodeImport &n) {
  Value x = n.input(0);
  Shape shape(n.shapeOf(x));
  int64_t dim = PARTITA_TRY(n.axisAttr(n.opset < 13 ? 1 : -1, shape.size()));
  if (n.opset < 13) {
    x = n.reshape(x, {product(ArrayRef(shape).take_front(dim)),
                      product(ArrayRef(shape).drop_front(dim))});
    dim = 1;
  }
  if (n.shapeOf(x)[dim] == 0)
    return n.result(0, n.input(0));
  Value arg = PARTITA_TRY(makeArg(n, x, dim, /*largest=*/true, /*last=*/false));
  Value isArg =
      n.eq(makeIota(n, n.shapeOf(x), dim), n.broadcastTo(arg, n.shapeOf(x)));
  return n.result(0, n.reshape(n.select(isArg, n.splat(1, x), 0), shape));
}

/// Where the first or last elements of each row are, and what they are.
LogicalResult importTopK(NodeImport &n) {
  Value x = n.input(0);
  int64_t rank = n.typeOf(x).getRank();
  int64_t axis = PARTITA_TRY(n.axisAttr(-1, rank));
  Shape k =
      PARTITA_TRY(n.opset < 10 ? FailureOr<Shape>(Shape{n.intAttr("k", 0)})
                               : n.constantInts(1, "K"));
  int64_t size = n.shapeOf(x)[axis];
  if (k.size() != 1 || k.front() < 0 || k.front() > size)
    return n.error("K must be a number from 0 to the size of the axis, " +
                   Twine(size));
  int64_t count = k.front();

  Value row = n.transpose(x, toLast(rank, axis));
  Shape chosen(n.shapeOf(row));
  chosen.back() = count;
  int64_t rows = product(ArrayRef(chosen).drop_back());
  Value values, indices;
  if (rows * count == 0) {
    values = n.splat(0, chosen, n.elementOf(x));
    indices = n.splat(0, chosen, n.b.getI64Type());
  } else {
    indices = n.make<nn::TopKOp>(
        RankedTensorType::get({rows, count}, n.b.getI64Type()),
        n.intAttr("largest", 1) != 0,
        toOrdered(n, n.reshape(row, {rows, size}), /*compared=*/true));
    indices = n.reshape(indices, chosen);
    values = n.make<nn::GatherElementsOp>(
        RankedTensorType::get(chosen, n.elementOf(x)), row, indices, rank - 1);
  }
  PARTITA_TRY(n.result(0, n.transpose(values, fromLast(rank, axis))));
  return n.result(1, n.transpose(indices, fromLast(rank, axis)));
}

const OpRow rankingOps[] = {
    {"ArgMax", 1, 13, importArg<true>},
    {"ArgMin", 1, 13, importArg<false>},
    {"Hardmax", 1, 13, importHardmax},
    {"TopK", 1, 24, importTopK},
};

} // namespace

ArrayRef<OpRow> getRankingOps() { return rankingOps; }

} // namespace partita::import

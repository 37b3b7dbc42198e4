//===- Pattern.cpp - Values by their place: triangles, diagonals, one-hot -===//
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

/// Keeps what is above or below a diagonal of the matrices.
LogicalResult importTrilu(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  int64_t rank = shape.size();
  if (rank < 2)
    return n.error("the input must have rank 2 at least");
  Value k = n.input(1);
  if (k && n.typeOf(k).getNumElements() != 1)
    return n.error("k must be a single number");
  Value offset =
      n.sub(makeIota(n, shape, rank - 1), makeIota(n, shape, rank - 2));
  Value diagonal =
      k ? n.broadcastTo(n.reshape(k, {}), shape) : n.splat(0, offset);
  bool upper = n.intAttr("upper", 1) != 0;
  Value isKept =
      n.compare(upper ? nn::ComparePredicate::ge : nn::ComparePredicate::le,
                offset, diagonal);
  return n.result(0, n.select(isKept, x, 0));
}

LogicalResult importEyeLike(NodeImport &n) {
  Value x = n.input(0);
  ArrayRef<int64_t> shape = n.shapeOf(x);
  if (shape.size() != 2)
    return n.error("the input must be a matrix");
  Type element = n.typeAttr("dtype", n.elementOf(x));
  if (!element)
    return n.error("the attribute dtype names no type that is supported");
  Value isOne = n.eq(makeIota(n, shape, 1),
                     n.add(makeIota(n, shape, 0), n.intAttr("k", 0)));
  return n.result(0, n.cast(isOne, element));
}

LogicalResult importOneHot(NodeImport &n) {
  Value indices = n.input(0), values = n.input(2);
  auto depth = PARTITA_TRY(n.constantFloats(1, "depth"));
  if (depth.size() != 1 || !(depth.front() >= 0 && depth.front() < 1e9))
    return n.error("depth must be a single number, not negative");
  if (n.typeOf(values).getRank() != 1 || n.typeOf(values).getNumElements() != 2)
    return n.error("values must hold two numbers");
  int64_t size = static_cast<int64_t>(depth.front());
  Shape shape(n.shapeOf(indices));
  int64_t axis = PARTITA_TRY(n.axisAttr(-1, shape.size() + 1));
  shape.insert(shape.begin() + axis, size);
  Shape dims;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    if (i != axis)
      dims.push_back(i);
  Value hot = n.broadcastDims(wrapIndex(n, indices, size), dims, shape);
  Value isHot = n.eq(hot, makeIota(n, shape, axis));
  auto pick = [&](int64_t i) {
    return n.broadcastTo(n.at(values, 0, i), shape);
  };
  return n.result(0, n.select(isHot, pick(1), pick(0)));
}

/// Sums or products of all elements up to each.
template <nn::ReduceKind kind> LogicalResult importCumulative(NodeImport &n) {
  Value x = n.input(0);
  Type element = n.elementOf(x);
  Shape shape(n.shapeOf(x));
  int64_t rank = shape.size();
  int64_t given = PARTITA_TRY(n.constantInt(1, "axis"));
  int64_t axis = PARTITA_TRY(n.axis(given, rank));
  int64_t size = shape[axis];
  if (product(shape) == 0)
    return n.result(0, x);
  bool reversed = n.intAttr("reverse", 0) != 0;
  Value from = toOrdered(n, reversed ? n.reverse(x, {axis}) : x,
                         /*compared=*/false);
  if (n.intAttr("exclusive", 0) != 0) {
    // The neutral element comes first, and the last one to nothing.
    Shape zeros(rank, 0), low(zeros);
    low[axis] = 1;
    Value neutral =
        n.splat(kind == nn::ReduceKind::sum ? 0 : 1, {}, n.elementOf(from));
    from = n.pad(n.part(from, axis, 0, size - 1), neutral, low, zeros);
  }
  if (!from)
    return failure();
  Value all =
      fromOrdered(n, n.make<nn::ScanOp>(from.getType(), kind, from, axis),
                  element, /*compared=*/false);
  return n.result(0, reversed ? n.reverse(all, {axis}) : all);
}

const OpRow patternOps[] = {
    {"CumProd", 26, 26, importCumulative<nn::ReduceKind::prod>},
    {"CumSum", 11, 14, importCumulative<nn::ReduceKind::sum>},
    {"EyeLike", 9, 22, importEyeLike},
    {"OneHot", 9, 28, importOneHot},
    {"Trilu", 14, 14, importTrilu},
};

} // namespace

ArrayRef<OpRow> getPatternOps() { return patternOps; }

} // namespace partita::import

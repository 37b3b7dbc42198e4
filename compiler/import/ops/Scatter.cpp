//===- Scatter.cpp - Tensors changed at places that indices name ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/math/IndexMath.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// `x` [R, W] after the rows of `updates` [U, W] have come to the rows `places`
/// [U] one after the other. Places out of range do nothing.
Value scatterRows(NodeImport &n, Value x, Value places, Value updates,
                  StringRef reduction) {
  if (!x || !places || !updates)
    return {};
  StringRef name = reduction == "add"   ? "sum"
                   : reduction == "mul" ? "prod"
                                        : reduction;
  nn::ReduceKindAttr combine;
  if (std::optional<nn::ReduceKind> kind = nn::symbolizeReduceKind(name))
    combine = nn::ReduceKindAttr::get(n.b.getContext(), *kind);
  bool compared = reduction == "max" || reduction == "min";
  Value base = toOrdered(n, x, compared),
        rows = toOrdered(n, updates, compared);
  if (!base || !rows)
    return {};
  return fromOrdered(
      n, n.make<nn::ScatterOp>(base.getType(), base, places, rows, combine),
      n.elementOf(x), compared);
}

FailureOr<std::string> getScatterReduction(NodeImport &n) {
  return n.choice("reduction", {"none", "add", "mul", "max", "min"});
}

LogicalResult importScatterElements(NodeImport &n) {
  Value x = n.input(0), indices = n.input(1), updates = n.input(2);
  Shape shape(n.shapeOf(x)), given(n.shapeOf(indices));
  int64_t rank = shape.size();
  FailureOr<int64_t> axis = n.axisAttr(0, rank);
  FailureOr<std::string> reduction = getScatterReduction(n);
  if (failed(axis) || failed(reduction))
    return failure();
  bool fits = given.size() == shape.size() &&
              n.shapeOf(updates) == ArrayRef<int64_t>(given);
  for (int64_t dim = 0; fits && dim < rank; ++dim)
    fits = dim == *axis || given[dim] <= shape[dim];
  if (!fits)
    return n.error("indices and updates do not fit the data");
  int64_t size = product(shape), count = product(given);
  if (size == 0 || count == 0)
    return n.result(0, x);
  PARTITA_TRY(checkIndices(n, indices, shape[*axis], {1, "indices"}));
  // The place of each update among all elements.
  Value index = wrapIndex(n, indices, shape[*axis]);
  Value places = n.splat(0, given, n.b.getI64Type());
  for (int64_t dim = 0; dim < rank; ++dim)
    places = n.add(n.mul(places, shape[dim]),
                   dim == *axis ? index : makeIota(n, given, dim));
  places = n.select(isWithin(n, index, 0, static_cast<double>(shape[*axis])),
                    places, -1);
  Value result =
      scatterRows(n, n.reshape(x, {size, 1}), n.reshape(places, {count}),
                  n.reshape(updates, {count, 1}), *reduction);
  return n.result(0, n.reshape(result, shape));
}

/// [.., K] indices into dimensions of the given sizes as places in one.
Value makePlaces(NodeImport &n, Value indices, ArrayRef<int64_t> sizes) {
  const int64_t last = n.typeOf(indices).getRank() - 1;
  Value places = n.splat(0, n.shapeOf(indices).drop_back(), n.b.getI64Type());
  for (auto [k, size] : enumerate(sizes))
    places =
        n.add(n.mul(places, size),
              wrapIndex(n, n.at(indices, last, static_cast<int64_t>(k)), size));
  return places;
}

LogicalResult importGatherND(NodeImport &n) {
  Value x = n.input(0), indices = n.input(1);
  ArrayRef<int64_t> shape = n.shapeOf(x), given = n.shapeOf(indices);
  int64_t batch = n.intAttr("batch_dims", 0);
  int64_t depth = given.empty() ? 0 : given.back();
  if (batch < 0 || given.empty() ||
      batch >= static_cast<int64_t>(given.size()) ||
      batch + depth > static_cast<int64_t>(shape.size()) ||
      shape.take_front(batch) != given.take_front(batch))
    return n.error("indices and batch_dims do not fit the data");
  ArrayRef<int64_t> indexed = shape.slice(batch, depth),
                    rest = shape.drop_front(batch + depth),
                    where = given.drop_back();
  if (depth > 0 && !is_contained(indexed, 0))
    PARTITA_TRY(checkIndices(n, indices, indexed, {1, "indices"}));
  Value places = makePlaces(n, indices, indexed);
  // Each batch begins where the one before it ends.
  Value start = n.splat(0, where, n.b.getI64Type());
  for (int64_t dim = 0; dim < batch; ++dim)
    start = n.add(n.mul(start, shape[dim]), makeIota(n, where, dim));
  if (batch > 0)
    places = n.add(places, n.mul(start, product(indexed)));
  Shape flat{product(shape.take_front(batch + depth))};
  append_range(flat, rest);
  return n.result(0, n.gather(n.reshape(x, flat), places, 0));
}

/// The update of each place, from places that are known: a gather.
Value scatterKnown(NodeImport &n, Value x, DenseElementsAttr places,
                   Value updates) {
  ArrayRef<int64_t> shape = n.shapeOf(x);
  SmallVector<int64_t> winner(shape[0], 0);
  SmallVector<bool> isChanged(shape[0], false);
  for (auto [u, place] : enumerate(places.getValues<APInt>())) {
    int64_t at = place.getSExtValue();
    if (at < 0 || at >= shape[0])
      continue;
    winner[at] = static_cast<int64_t>(u);
    isChanged[at] = true;
  }
  auto type = RankedTensorType::get({shape[0]}, n.b.getI1Type());
  Value mask = n.constant(DenseElementsAttr::get(type, isChanged));
  return n.select(n.broadcastDims(mask, {0}, shape),
                  n.gather(updates, n.indices(winner), 0), x);
}

LogicalResult importScatterND(NodeImport &n) {
  Value x = n.input(0), indices = n.input(1), updates = n.input(2);
  ArrayRef<int64_t> shape = n.shapeOf(x), given = n.shapeOf(indices);
  int64_t depth = given.empty() ? 0 : given.back();
  std::string reduction = PARTITA_TRY(getScatterReduction(n));
  if (given.empty() || depth > static_cast<int64_t>(shape.size()))
    return n.error("indices do not fit the data");
  Shape expected(given.drop_back());
  append_range(expected, shape.drop_front(depth));
  if (n.shapeOf(updates) != ArrayRef(expected))
    return n.error("updates do not fit data and indices");
  int64_t size = product(shape.take_front(depth)),
          row = product(shape.drop_front(depth)),
          count = product(given.drop_back());
  if (count == 0 || size == 0 || row == 0)
    return n.result(0, x);
  ArrayRef<int64_t> indexed = shape.take_front(depth);
  if (depth > 0)
    PARTITA_TRY(checkIndices(n, indices, indexed, {1, "indices"}));
  Value places = n.reshape(makePlaces(n, indices, indexed), {count});
  Value flat = n.reshape(x, {size, row});
  Value flatUpdates = n.reshape(updates, {count, row});
  if (!places || !flat || !flatUpdates)
    return failure();
  constexpr int64_t kMostKnown = int64_t(1) << 20;
  DenseElementsAttr known = n.getConstant(places);
  Value result = known && reduction == "none" && size <= kMostKnown
                     ? scatterKnown(n, flat, known, flatUpdates)
                     : scatterRows(n, flat, places, flatUpdates, reduction);
  return n.result(0, n.reshape(result, shape));
}

/// A cache with an update written along an axis, from a place of each batch.
LogicalResult importTensorScatter(NodeImport &n) {
  Value x = n.input(0), update = n.input(1), start = n.input(2);
  Shape shape(n.shapeOf(x));
  int64_t rank = shape.size();
  int64_t axis = PARTITA_TRY(n.axisAttr(-2, rank));
  std::string mode = PARTITA_TRY(n.choice("mode", {"linear", "circular"}));
  Shape expected(shape);
  expected[axis] =
      n.shapeOf(update).size() == shape.size() ? n.shapeOf(update)[axis] : -1;
  if (axis == 0 || n.shapeOf(update) != ArrayRef(expected))
    return n.error("the update does not fit the cache");
  if (expected[axis] == 0)
    return n.result(0, x);
  if (expected[axis] > shape[axis])
    return n.error("the update is longer than the cache");
  Value places = n.splat(0, {shape[0]}, n.b.getI64Type());
  if (start) {
    if (n.shapeOf(start) != ArrayRef(shape).take_front(1))
      return n.error("write_indices must have one element a batch");
    // In a circle every place that is not negative is one.
    constexpr int64_t kLargest = int64_t(1) << 53;
    const int64_t last =
        mode == "circular" ? kLargest : shape[axis] - expected[axis];
    PARTITA_TRY(
        checkRange(n, start, NumberRange{0, last}, {2, "write_indices"}));
    places = n.cast(start, n.b.getI64Type());
  }
  if (!places)
    return failure();
  return n.result(
      0, n.make<nn::UpdateSliceOp>(n.typeOf(x), x, update, places, axis));
}

const OpRow scatterOps[] = {
    {"GatherND", 11, 13, importGatherND},
    {"Scatter", 9, 9, importScatterElements},
    {"ScatterElements", 11, 18, importScatterElements},
    {"ScatterND", 11, 18, importScatterND},
    {"TensorScatter", 24, 24, importTensorScatter},
};

} // namespace

ArrayRef<OpRow> getScatterOps() { return scatterOps; }

} // namespace partita::import

//===- Cotangents.cpp - What has been added up so far ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Cotangents.h"

#include "compiler/autodiff/Replicas.h"
#include "dialects/nn/grad/Term.h"

using namespace mlir;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

namespace partita::autodiff {

/// The only dimension that is cut, if neighbours are taken; else -1.
static int64_t cutDimOf(nn::SliceOp slice) {
  int64_t dim = -1;
  const ArrayRef<int64_t> whole = slice.getX().getType().getShape();
  for (size_t i = 0; i < whole.size(); ++i) {
    if (slice.getStrides()[i] != 1)
      return -1;
    if (slice.getType().getShape()[i] == whole[i])
      continue;
    if (dim >= 0)
      return -1;
    dim = int64_t(i);
  }
  return dim;
}

static int64_t cutStartOf(nn::SliceOp slice) {
  return slice.getStarts()[size_t(cutDimOf(slice))];
}

void Cotangents::addTo(Value &sum, Value part) {
  sum = sum ? (Term(b, sum) + Term(b, part)).get() : part;
}

void Cotangents::add(Value value, Cotangent part) {
  Sum &sum = sums[value];
  addTo(part.isShare ? sum.shares : sum.whole, part.value);
}

bool Cotangents::addSlice(nn::SliceOp slice, Cotangent part) {
  if (cutDimOf(slice) < 0)
    return false;
  slices[slice.getX()][part.isShare ? 1 : 0].push_back({slice, part.value});
  return true;
}

void Cotangents::join(Value value, SmallVector<Part> parts, bool areShares) {
  const RankedTensorType type = nn::getTensorType(value);
  llvm::stable_sort(parts, [](const Part &one, const Part &other) {
    return cutStartOf(one.slice) < cutStartOf(other.slice);
  });
  while (!parts.empty()) {
    const int64_t dim = cutDimOf(parts.front().slice);
    SmallVector<Part> later;
    SmallVector<Value> row;
    int64_t end = 0;
    auto fill = [&](int64_t to) {
      if (to == end)
        return;
      Shape shape(type.getShape());
      shape[size_t(dim)] = to - end;
      row.push_back(nn::ConstantOp::create(
          b, DenseElementsAttr::get(
                 RankedTensorType::get(shape, type.getElementType()),
                 b.getFloatAttr(type.getElementType(), 0).getValue())));
    };
    for (Part &part : parts) {
      if (cutDimOf(part.slice) != dim || cutStartOf(part.slice) < end) {
        later.push_back(part);
        continue;
      }
      fill(cutStartOf(part.slice));
      row.push_back(part.cotangent);
      end = part.slice.getLimits()[size_t(dim)];
    }
    fill(type.getDimSize(unsigned(dim)));
    add(value, {row.size() == 1
                    ? row[0]
                    : b.createOrFold<nn::ConcatOp>(value.getType(), row, dim),
                areShares});
    parts = later;
  }
}

Cotangents::Sum Cotangents::takeSum(Value value) {
  if (auto found = slices.find(value); found != slices.end()) {
    auto parts = std::move(found->second);
    slices.erase(found);
    join(value, std::move(parts[0]), /*areShares=*/false);
    join(value, std::move(parts[1]), /*areShares=*/true);
  }
  Sum sum = sums.lookup(value);
  sums.erase(value);
  return sum;
}

Value Cotangents::makeWhole(Sum sum, const Twine &what) {
  if (sum.shares)
    addTo(sum.whole,
          sumOverReplicas(b, sum.shares,
                          what + " is the sum of those of all replicas"));
  return sum.whole;
}

Cotangent Cotangents::makeWhole(Cotangent cotangent, const Twine &what) {
  return cotangent.isShare
             ? Cotangent{makeWhole(Sum{Value(), cotangent.value}, what)}
             : cotangent;
}

Cotangent Cotangents::take(Value value) {
  Sum sum = takeSum(value);
  if (sum.shares && !sum.whole)
    return {sum.shares, true};
  if (!sum.shares)
    return {sum.whole};
  Operation *op = value.getDefiningOp();
  return {makeWhole(sum, "the cotangent of '" +
                             (op ? nn::getNodeName(op) : "an input") + "'")};
}

Value Cotangents::takeWhole(ArrayRef<Value> copies, const Twine &what) {
  Sum all;
  for (Value copy : copies) {
    const Sum sum = takeSum(copy);
    if (Value part = sum.whole)
      addTo(all.whole, part);
    if (Value part = sum.shares)
      addTo(all.shares, part);
  }
  if (all.shares)
    b.setLoc(all.shares.getLoc());
  return makeWhole(all, what);
}

} // namespace partita::autodiff

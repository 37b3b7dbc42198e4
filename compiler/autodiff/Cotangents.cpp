//===- Cotangents.cpp - What has been added up so far ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Cotangents.h"

#include "compiler/autodiff/Replicas.h"
#include "dialects/nn/fold/ConstantElements.h"
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

void Cotangents::addSum(Value value, Cotangent part) {
  Sum &sum = sums[value];
  addTo(part.isShare ? sum.shares : sum.whole, part.value);
}

/// The product that a value is, or of which it is a transpose.
static nn::DotOp getProduct(Value value) {
  if (auto transpose = value.getDefiningOp<nn::TransposeOp>())
    value = transpose.getX();
  return value.getDefiningOp<nn::DotOp>();
}

void Cotangents::add(Value value, Cotangent part) {
  if (getProduct(part.value))
    products[value][part.isShare ? 1 : 0].push_back(part.value);
  else
    addSum(value, part);
}

/// Whether one product of all factors is less work than the sum of the products
/// of each: they are products of one node, and their factors are small beside
/// their results.
static bool mayJoin(Value one, Value other) {
  nn::DotOp dot = getProduct(one), otherDot = getProduct(other);
  auto transpose = one.getDefiningOp<nn::TransposeOp>(),
       otherTranspose = other.getDefiningOp<nn::TransposeOp>();
  const auto size = [](Value value) {
    return nn::getTensorType(value).getNumElements();
  };
  return dot.getLoc() == otherDot.getLoc() &&
         dot->getAttrs() == otherDot->getAttrs() &&
         dot->getOperandTypes() == otherDot->getOperandTypes() &&
         !transpose == !otherTranspose &&
         (!transpose || transpose->getAttrs() == otherTranspose->getAttrs()) &&
         size(dot.getLhs()) + size(dot.getRhs()) <= 2 * size(dot);
}

/// Tensors of one type along a new dimension 0.
Value Cotangents::stack(ArrayRef<Value> values) {
  Shape row(nn::getTensorType(values.front()).getShape());
  row.insert(row.begin(), 1);
  SmallVector<Value> rows;
  for (Value value : values)
    rows.push_back(Term(b, value).reshape(row).get());
  row.front() = static_cast<int64_t>(values.size());
  return b.createOrFold<nn::ConcatOp>(
      RankedTensorType::get(row, getElementTypeOrSelf(values.front())), rows,
      0);
}

/// The sum of products of pairs of factors is one product, over which pair it
/// is, too. It needs no tensor of the result's size for each of them.
Value Cotangents::joinProducts(ArrayRef<Value> parts) {
  SmallVector<Value> lhs, rhs;
  for (Value part : parts) {
    lhs.push_back(getProduct(part).getLhs());
    rhs.push_back(getProduct(part).getRhs());
  }
  nn::DotOp first = getProduct(parts[0]);
  auto moved = [](ArrayRef<int64_t> dims, bool isContracted) {
    Shape result;
    if (isContracted)
      result.push_back(0);
    for (int64_t dim : dims)
      result.push_back(dim + 1);
    return result;
  };
  const Location outer = b.getLoc();
  b.setLoc(first.getLoc());
  Value left = stack(lhs), right = stack(rhs);
  Value sum = nn::DotOp::create(
      b, first.getType(), left, right, moved(first.getLhsBatch(), false),
      moved(first.getRhsBatch(), false), moved(first.getLhsContract(), true),
      moved(first.getRhsContract(), true));
  if (auto transpose = parts[0].getDefiningOp<nn::TransposeOp>())
    sum = Term(b, sum).transpose(transpose.getPermutation()).get();
  b.setLoc(outer);
  for (Value part : parts) {
    nn::DotOp dot = getProduct(part);
    if (Operation *op = part.getDefiningOp(); op != dot && op->use_empty())
      op->erase();
    if (dot->use_empty())
      dot.erase();
  }
  return sum;
}

void Cotangents::addProducts(Value value, ArrayRef<Value> parts,
                             bool areShares) {
  SmallVector<Value> others(parts);
  while (!others.empty()) {
    SmallVector<Value> group, later;
    for (Value part : others)
      (group.empty() || mayJoin(group.front(), part) ? group : later)
          .push_back(part);
    others = later;
    addSum(value,
           {group.size() == 1 ? group[0] : joinProducts(group), areShares});
  }
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
      row.push_back(
          nn::ConstantOp::create(b, nn::makeSplat(type.clone(shape), 0)));
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
  if (auto found = products.find(value); found != products.end()) {
    const auto parts = std::move(found->second);
    products.erase(found);
    addProducts(value, parts[0], /*areShares=*/false);
    addProducts(value, parts[1], /*areShares=*/true);
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
